package guard

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

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

// part is a range of addresses.
type part struct{ start, end uintptr }

// clean returns the parts of memory that are the same as in a file, from the text of
// /proc/PID/smaps. It leaves out writable parts. It also leaves out parts with pages that the
// process has changed, in memory or swapped out: the loader writes addresses into the constants of
// a position-independent program (-buildmode=pie) before they become read-only, and those pages
// would be lost.
func clean(smaps []byte, file string) (all []part) {
	var p part
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
func ofFile(fields [][]byte, file string) (part, bool) {
	if len(fields) < 6 || string(fields[5]) != file || bytes.ContainsRune(fields[1], 'w') {
		return part{}, false
	}
	from, to, _ := bytes.Cut(fields[0], []byte("-"))
	a, errA := strconv.ParseUint(string(from), 16, 64)
	b, errB := strconv.ParseUint(string(to), 16, 64)
	return part{uintptr(a), uintptr(b)}, errA == nil && errB == nil && a < b
}
