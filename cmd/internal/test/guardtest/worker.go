//go:build unix

package guardtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Worker is a command that notes its actions in a journal: "file:3" for an inherited file, "begin",
// then "act" all the time, and the signals that it receives, such as "SIGTERM", until "end".
type Worker struct {
	Name, Journal string
	// For is how long it works; 0: until a signal ends it.
	For time.Duration
	// Deaf makes it ignore SIGTERM and SIGINT. Otherwise these end it after Finish.
	Deaf   bool
	Finish time.Duration
	// Code is its exit code.
	Code int
	// Children are started first. The worker does not wait for their end.
	Children []Worker
	// Apart puts a child into a session of its own. Strays makes a command leave its process group
	// and join that of its parent.
	Apart, Strays bool
	// Closes makes it close its inherited files, and start children without any.
	Closes bool
}

// Args returns the arguments by which the test binary becomes this worker.
func (w Worker) Args() []string {
	spec, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return []string{"worker", string(spec)}
}

// heard are the signals that it notes.
var heard = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH,
}

// between is the time from one act to the next.
const between = 2 * time.Millisecond

func work(spec string) error {
	var w Worker
	if err := json.Unmarshal([]byte(spec), &w); err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, heard...)
	for fd, name := range given() {
		if err := w.note("file:" + name); err != nil {
			return err
		}
		if w.Closes {
			_ = unix.Close(fd)
		}
	}
	if err := w.startChildren(); err != nil {
		return err
	}
	if w.Strays {
		if err := stray(); err != nil {
			return err
		}
	}
	if err := w.note("begin"); err != nil {
		return err
	}
	w.workUntilOver(signals)
	if err := w.note("end"); err != nil {
		return err
	}
	os.Exit(w.Code)
	return nil
}

// Given returns the numbers of the files that this process has inherited, besides the standard
// ones. The name "high" stands for any number that is far above those that programs use.
func Given() (names []string) {
	for _, name := range given() {
		names = append(names, name)
	}
	return names
}

// given returns the inherited files. Files that this process has opened are close-on-exec, and are
// left out.
func given() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for fd := 3; fd < 1000; fd++ {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
			if err != nil || flags&unix.FD_CLOEXEC != 0 {
				continue
			}
			name := "high"
			if fd < 100 {
				name = strconv.Itoa(fd)
			}
			if !yield(fd, name) {
				return
			}
		}
	}
}

// workUntilOver returns when the work is over.
func (w *Worker) workUntilOver(signals <-chan os.Signal) {
	ticker := time.NewTicker(between)
	var over <-chan time.Time
	if w.For > 0 {
		over = time.After(w.For)
	}
	for {
		select {
		case s := <-signals:
			_ = w.note(unix.SignalName(s.(syscall.Signal)))
			if ends := s == unix.SIGTERM || s == unix.SIGINT; ends && !w.Deaf {
				over = time.After(w.Finish)
			}
		case <-ticker.C:
			_ = w.note("act")
		case <-over:
			return
		}
	}
}

func stray() error {
	group, err := unix.Getpgid(os.Getppid())
	if err != nil {
		return err
	}
	return unix.Setpgid(0, group)
}

// startChildren starts the children and waits until each has noted "begin".
func (w *Worker) startChildren() error {
	j := &Journal{Path: w.Journal}
	for _, child := range w.Children {
		child.Journal = w.Journal
		c := exec.Command(Self(), child.Args()...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: child.Apart}
		if err := c.Start(); err != nil {
			return err
		}
		for !begun(j, child.Name) {
			time.Sleep(between)
		}
	}
	return nil
}

func begun(j *Journal, name string) bool {
	_, ok := j.Find(name, "begin")
	return ok
}

func (w *Worker) note(what string) error {
	token, _ := strconv.ParseUint(os.Getenv("TENURE_TOKEN"), 10, 64)
	return (&Journal{Path: w.Journal}).add(Note{Token: token, Name: w.Name, What: what})
}

// Main is for TestMain. By the first argument it makes the test binary a guard or a worker, or else
// runs the tests. More tests run side by side than there are processors, since they mostly wait.
func Main(m *testing.M, guard func(numbers []string) error) {
	err := flag.Set("test.parallel", "8")
	switch role := append(os.Args, "", "")[1]; role {
	case "guard":
		err = guard(os.Args[2:])
	case "worker":
		err = work(os.Args[2])
	default:
		// a shell ignores it for background jobs: guards and workers would inherit that
		if signal.Ignored(os.Interrupt) {
			signal.Notify(make(chan os.Signal, 1), os.Interrupt)
		}
		if err == nil {
			os.Exit(m.Run())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Guard returns the command line of a guard.
func Guard() *exec.Cmd { return exec.Command(Self(), "guard") }

// Self returns the path of the test binary.
func Self() string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return self
}

// Output collects text, which can be read while it is written.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns the text so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
