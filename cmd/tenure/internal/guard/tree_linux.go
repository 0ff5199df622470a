package guard

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// descendants returns all processes that descend from one, as far as /proc shows them, parents
// before their children. It leaves out the given children and their descendants.
func descendants(of int, but map[int]bool) []int {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parent := parentOf(pid)
			children[parent] = append(children[parent], pid)
		}
	}
	all := slices.DeleteFunc(children[of], func(pid int) bool { return but[pid] })
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// parentOf returns the parent of a process, or 0 if the process has ended. The name of a program
// may hold any character, so it ends at the last parenthesis.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}
