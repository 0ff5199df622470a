//go:build unix

package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// order is one message from the candidate to the guard; one field is set.
type order struct {
	Run     *Command `json:"run,omitempty"`
	Renewed bool     `json:"renewed,omitempty"` // the remaining time has changed: ask
	Left    *left    `json:"left,omitempty"`
	Signal  *forward `json:"signal,omitempty"`
	Kill    bool     `json:"kill,omitempty"` // at once
}

// Command is the program to run. Its strings are bytes, since arguments need not be text, and JSON
// would change them.
type Command struct {
	Path []byte   `json:"path"`
	Args [][]byte `json:"args"`
	Env  [][]byte `json:"env"`
	// Output is a file to which standard output and standard error are added. If it is empty, they
	// are those of the guard.
	Output []byte `json:"output,omitempty"`
}

// NewCommand returns the command with this file, these arguments (the name is the first), and this
// whole environment.
func NewCommand(path string, args, env []string) Command {
	return Command{Path: []byte(path), Args: inBytes(args), Env: inBytes(env)}
}

func inBytes(all []string) (b [][]byte) {
	for _, s := range all {
		b = append(b, []byte(s))
	}
	return b
}

func inText(all [][]byte) (s []string) {
	for _, b := range all {
		s = append(s, string(b))
	}
	return s
}

// left answers a question.
type left struct {
	Question uint64 `json:"question"`
	// what is left of the lease, in nanoseconds; 0 or less: the term is over
	Left time.Duration `json:"left"`
	Stop time.Duration `json:"stop"` // after the deadline: no other candidate leads before its end
}

// forward is a signal for the command alone, or for all its descendants too.
type forward struct {
	Number int  `json:"number"`
	All    bool `json:"all,omitempty"`
}

// report is one message from the guard to the candidate; one field is set.
type report struct {
	Ready    bool        `json:"ready,omitempty"`    // to run commands; it or Unable is first
	Unable   string      `json:"unable,omitempty"`   // the reason why it cannot
	Question uint64      `json:"question,omitempty"` // its number: how much is left?
	Started  int         `json:"started,omitempty"`  // the process of the command
	Failed   *StartError `json:"failed,omitempty"`   // the command could not be started
	Ended    *Ending     `json:"ended,omitempty"`
	Empty    bool        `json:"empty,omitempty"` // no descendant of the command is left
}

// Ending is how the command ended: by an exit code, or by a signal if that is not 0.
type Ending struct {
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
	// Forced reports that the guard had asked it to end before, or killed it.
	Forced bool `json:"forced,omitempty"`
}

// ExitCode is the exit code that a shell would report.
func (e Ending) ExitCode() int {
	if e.Signal != 0 {
		return 128 + e.Signal
	}
	return e.Code
}

// pipe writes messages, one on a line.
type pipe struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *pipe) send(message any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return json.NewEncoder(p.w).Encode(message)
}

// receive calls hear for each message, until the end of r or an invalid message.
func receive[T any](r io.Reader, hear func(T)) {
	in := json.NewDecoder(bufio.NewReader(r))
	for {
		var message T
		if in.Decode(&message) != nil {
			return
		}
		hear(message)
	}
}

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
