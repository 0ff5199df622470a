package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// processesOf returns all running processes with the mark. A process that is just ending may be
// missing.
func processesOf(mark string) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []process
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := look(pid, mark); ok && p.runs() {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// look returns a process if it has the mark.
func look(pid int, mark string) (process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	environ, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil || !bytes.Contains(environ, []byte(markVariable+"="+mark+"\x00")) {
		return process{}, false
	}
	p := process{pid: pid}
	for _, v := range strings.Split(string(environ), "\x00") {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "TENURE_ID":
			p.id = value
		case "TENURE_TOKEN":
			p.token = value
		}
	}
	p.exe, _ = os.Readlink(filepath.Join(dir, "exe"))
	args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p.args = strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")
	return p, p.readStat(dir)
}

// readStat reports whether the process still exists. Its name, in brackets, may have any
// characters.
func (p *process) readStat(dir string) bool {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return false
	}
	p.state = fields[0][0]
	p.parent, err = strconv.Atoi(fields[1])
	return err == nil
}

// tick is the unit of times in /proc, whatever unit the kernel uses.
const tick = 10 * time.Millisecond

// usageOf returns the usage of a process.
func usageOf(pid int) (usage, error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	rollup, err := os.ReadFile(dir + "smaps_rollup")
	if err != nil {
		return usage{}, err
	}
	var u usage
	for line := range strings.Lines(string(rollup)) {
		var n uint64
		name, value, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(value, "%d kB", &n); err != nil {
			continue // the first line has no number
		}
		switch name {
		case "Rss":
			u.resident = n << 10
		case "Pss":
			u.proportional = n << 10
		case "Anonymous":
			u.anonymous = n << 10
		}
	}
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return usage{}, err
	}
	u.cpu, err = cpuIn(stat)
	return u, err
}

// cpuIn returns the sum of user and system time, fields 14 and 15 of the file. Field 3 is the first
// after the name.
func cpuIn(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc shows %d numbers", len(fields))
	}
	var ticks time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += time.Duration(n)
	}
	return ticks * tick, nil
}
