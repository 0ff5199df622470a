package machine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Processes returns the numbers of all processes. Like all of this file, it needs /proc.
func Processes() (pids []int, err error) {
	dirs, err := os.ReadDir("/proc")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(dir.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Stat returns the fields that describe a process, after its number and its name: first its state,
// then its parent. There are none if the process is gone.
func Stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	name := bytes.LastIndexByte(text, ')') // its end; the name may have spaces
	return strings.Fields(string(text[name+1:]))
}

// Parent returns the parent of a process.
func Parent(pid int) int {
	if fields := Stat(pid); len(fields) > 1 {
		parent, _ := strconv.Atoi(fields[1])
		return parent
	}
	return 0
}

// Lives reports whether a process has not ended. A zombie has ended.
func Lives(pid int) bool {
	fields := Stat(pid)
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// Memory is the memory of a process in bytes. Pages that several processes share count in part in
// Proportional, and in full in Resident.
type Memory struct{ Resident, Proportional, Anonymous uint64 }

// Of returns the memory of a process, and the processor time that it has used.
func Of(pid int) (m Memory, cpu time.Duration, err error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return m, 0, err
	}
	of := map[string]*uint64{"Rss": &m.Resident, "Pss": &m.Proportional, "Anonymous": &m.Anonymous}
	for line := range strings.Lines(string(rollup)) {
		var kilobytes uint64
		name, value, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(value, "%d kB", &kilobytes); err == nil && of[name] != nil {
			*of[name] = kilobytes << 10
		}
	}
	fields := Stat(pid)
	if len(fields) < 13 {
		return m, 0, fmt.Errorf("/proc shows %d fields of process %d", len(fields), pid)
	}
	for _, ticks := range fields[11:13] { // user and system time
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return m, 0, err
		}
		cpu += time.Duration(n) * 10 * time.Millisecond // whatever unit the kernel uses
	}
	return m, cpu, nil
}
