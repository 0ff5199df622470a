package guardtest

import (
	"bytes"
	"os"
	"strconv"
)

// runs reports whether a process can still act. A zombie cannot.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// behind the name, which may hold anything
	state := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[0][0]
	return state != 'Z' && state != 'X'
}
