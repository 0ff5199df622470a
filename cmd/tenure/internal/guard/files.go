//go:build unix

package guard

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// files connect a candidate with its guard. The guard's side has numbers far above those that
// programs use, and is not closed when the guard is executed: the other files that this process
// inherited go on to the command under their own numbers.
type files struct {
	orders, reports *os.File // this side
	tied            *os.File // the end of the tripwire that sends the signal; the guard has it too

	// the guard's side: orders, reports, the end of the tripwire that only the guard holds, and
	// tied
	theirs []int
}

func newFiles() (*files, error) {
	f := &files{}
	ordersIn, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	f.orders = orders
	reports, reportsOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	f.reports = reports
	held, tied, err := socketPair()
	if err != nil {
		return nil, err
	}
	f.tied = tied
	return f, f.give(ordersIn, reportsOut, held, tied)
}

func socketPair() (a, b *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	return os.NewFile(uintptr(pair[0]), "held"), os.NewFile(uintptr(pair[1]), "tied"), nil
}

// high is the lowest number of the files on the guard's side.
const high = 100

// give duplicates files for the guard's side, and closes all but the last, which both sides hold.
func (f *files) give(all ...*os.File) error {
	for i, file := range all {
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD, high)
		if errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("the limit of open files (ulimit -n) leaves no numbers above %d", high)
		}
		if err != nil {
			return err
		}
		f.theirs = append(f.theirs, fd)
		if i < len(all)-1 {
			_ = file.Close()
		}
	}
	return nil
}

// numbers returns those of the guard's side.
func (f *files) numbers() (n []string) {
	for _, fd := range f.theirs {
		n = append(n, strconv.Itoa(fd))
	}
	return n
}

// given closes the guard's side in this process, after the guard was started or failed to start.
func (f *files) given() {
	for _, fd := range f.theirs {
		_ = unix.Close(fd)
	}
	f.theirs = nil
}

// close closes this side. Then the guard reads the end of its orders.
func (f *files) close() {
	_ = f.orders.Close()
	_ = f.tied.Close()
}

// at returns the i-th text, or an empty one if there are fewer.
func at(all []string, i int) string {
	if i < len(all) {
		return all[i]
	}
	return ""
}
