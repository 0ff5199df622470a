package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

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
