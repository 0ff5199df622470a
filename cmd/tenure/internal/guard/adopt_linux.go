package guard

import (
	"os"

	"golang.org/x/sys/unix"
)

// others are the children that this process had before it executed tenure, such as when the entry
// point of a container runs "helper & exec tenure run ...". They are not orphans.
var others map[int]bool

// Adopt makes orphaned descendants become children of this process instead of the system's first
// process. Call it once, before any guard is started.
func Adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	others = map[int]bool{}
	all, _ := descendants(os.Getpid(), nil, unhurried)
	for _, f := range all {
		others[f.pid] = true
	}
}

// Bury reaps the orphans that have ended, as the first process of a container must.
func (g *Guard) Bury() {
	all, _ := descendants(os.Getpid(), nil, unhurried)
	for _, f := range all {
		if f.pid != g.PID() {
			// fails for children of other processes
			_, _ = unix.Wait4(f.pid, nil, unix.WNOHANG, nil)
		}
	}
}
