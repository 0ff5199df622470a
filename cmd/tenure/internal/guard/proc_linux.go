package guard

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// found is a process that a search of /proc has found. Its start, in ticks of the machine's clock,
// tells it from a later process with the same number.
type found struct {
	pid, parent int
	start       string
}

// descendants returns all processes that descend from one, as far as /proc shows them, parents
// before their children. It leaves out the given children and their descendants. If the search
// takes longer than within, it stops early and whole is false.
func descendants(of int, but map[int]bool, within time.Duration) (all []found, whole bool) {
	end := time.Now().Add(within)
	children, whole := childrenOf, true
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		children, whole = scan(end)
	}
	all = slices.DeleteFunc(children(of), func(f found) bool { return but[f.pid] })
	for i := 0; i < len(all); i++ {
		if !time.Now().Before(end) {
			return all, false
		}
		all = append(all, children(all[i].pid)...)
	}
	return all, whole
}

// childrenOf reads the children of a process from the lists of its threads. A list may lack a child
// if another one is reaped meanwhile: so it is exact only for a process that calls it for itself.
func childrenOf(pid int) (all []found) {
	threads := "/proc/" + strconv.Itoa(pid) + "/task/"
	entries, _ := os.ReadDir(threads)
	for _, e := range entries {
		list, _ := os.ReadFile(threads + e.Name() + "/children")
		for _, child := range bytes.Fields(list) {
			if pid, err := strconv.Atoi(string(child)); err == nil {
				all = append(all, lookAt(pid))
			}
		}
	}
	return all
}

// scan returns a function that does the same, for kernels without such lists (built without
// CONFIG_PROC_CHILDREN). It looks at all processes of the machine, which takes 60 ms and more if
// there are 3,000. At end it stops, and whole is false.
func scan(end time.Time) (children func(pid int) []found, whole bool) {
	of := map[int][]found{}
	children = func(pid int) []found { return of[pid] }
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if !time.Now().Before(end) {
			return children, false
		}
		f := lookAt(pid)
		of[f.parent] = append(of[f.parent], f)
	}
	return children, true
}

// lookAt returns a process. Its parent is 0 if the process has ended. The name of a program may
// hold any character, so it ends at the last parenthesis.
func lookAt(pid int) found {
	f := found{pid: pid}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return f
	}
	const parent, start = 1, 19 // counted from behind the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) > start {
		f.parent, _ = strconv.Atoi(string(fields[parent]))
		f.start = string(fields[start])
	}
	return f
}

// signal signals the process unless it has ended.
func (f found) signal(s unix.Signal) {
	if lookAt(f.pid).start == f.start {
		_ = unix.Kill(f.pid, s)
	}
}

// open returns a pidfd of the process. Until it is closed, no other process has its number.
func (f found) open() (fd int, err error) {
	fd, err = unix.PidfdOpen(f.pid, 0)
	if err == nil && lookAt(f.pid).start != f.start {
		_ = unix.Close(fd)
		return 0, unix.ESRCH
	}
	return fd, err
}

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
func Bury() {
	alive.Lock()
	defer alive.Unlock()
	all, _ := descendants(os.Getpid(), alive.guards, unhurried)
	for _, f := range all {
		// fails for children of other processes
		_, _ = unix.Wait4(f.pid, nil, unix.WNOHANG, nil)
	}
}

// giveBackPages returns the pages of the program's own file to the system. Pages that are used
// again come from the system's cache.
func giveBackPages() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, _ := os.ReadFile("/proc/self/smaps")
	for _, p := range clean(smaps, self) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, p.start, p.end-p.start, unix.MADV_DONTNEED)
	}
}

// addresses are a range of memory.
type addresses struct{ start, end uintptr }

// clean returns the parts of memory that are the same as in a file, from the text of
// /proc/PID/smaps. It leaves out writable parts. It also leaves out parts with pages that the
// process has changed, in memory or swapped out: the loader writes addresses into the constants of
// a position-independent program (-buildmode=pie) before they become read-only, and those pages
// would be lost.
func clean(smaps []byte, file string) (all []addresses) {
	var p addresses
	ok, resident := false, false
	for line := range bytes.Lines(smaps) {
		fields := bytes.Fields(line)
		switch {
		case len(fields) < 2:
		case !bytes.HasSuffix(fields[0], []byte(":")):
			p, ok = ofFile(fields, file)
		case string(fields[0]) == "Anonymous:":
			resident = string(fields[1]) != "0"
		case ok && !resident && string(fields[0]) == "Swap:" && string(fields[1]) == "0":
			all = append(all, p)
		}
	}
	return all
}

// ofFile reads the first line of an entry: addresses, permissions, offset, device, inode, file.
func ofFile(fields [][]byte, file string) (addresses, bool) {
	if len(fields) < 6 || string(fields[5]) != file || bytes.ContainsRune(fields[1], 'w') {
		return addresses{}, false
	}
	from, to, _ := bytes.Cut(fields[0], []byte("-"))
	a, errA := strconv.ParseUint(string(from), 16, 64)
	b, errB := strconv.ParseUint(string(to), 16, 64)
	return addresses{uintptr(a), uintptr(b)}, errA == nil && errB == nil && a < b
}
