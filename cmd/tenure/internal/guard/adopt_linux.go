package guard

import (
	"os"

	"golang.org/x/sys/unix"
)

// others are the children that this process had when it came to be what it is: "helper & exec tenure run ..." is how the
// entrypoints of containers begin. They are nobody's orphans.
var others map[int]bool

// Adopt has the orphans of this process come to it, rather than to the system's first process. It is called once, before any
// guard is started.
func Adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	others = map[int]bool{}
	for _, pid := range descendants(os.Getpid(), nil) {
		others[pid] = true
	}
}

// Bury takes in the orphans that have ended: what the first process of a container has to do.
func (g *Guard) Bury() {
	for _, pid := range descendants(os.Getpid(), nil) {
		if pid != g.PID() {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // fails for the children of others
		}
	}
}
