//go:build linux

// Command worker is the program that tenure runs in the battery. Only one copy may act at a time.
// It writes each of its acts into a journal, with the time and its token, and does not ask whether
// it may act.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// behavior holds the flags, which say how a worker behaves.
type behavior struct {
	journal  string
	ticks    string // a file; empty if tenure runs no job
	pace     time.Duration
	stop     time.Duration // how long the worker goes on after SIGTERM
	deaf     bool          // the worker ignores SIGTERM
	children int           // number of children, all deaf
	strays   int           // number of children in sessions of their own, all deaf
	life     time.Duration // how long the worker runs; 0 is no limit
	code     int           // the exit code at the end of life
	tidy     bool          // the worker closes its inherited files, as daemons do
	root     int           // the first worker if this one is a child, else 0
}

func main() {
	var h behavior
	flag.StringVar(&h.journal, "journal", "", "append what is done to this file")
	flag.StringVar(&h.ticks, "ticks", "", "append to this file which tick this is")
	flag.DurationVar(&h.pace, "pace", time.Millisecond, "the time from one act to the next")
	flag.DurationVar(&h.stop, "stop", 0, "go on for so long after SIGTERM")
	flag.BoolVar(&h.deaf, "deaf", false, "ignore SIGTERM")
	flag.IntVar(&h.children, "children", 0, "start so many others, which ignore SIGTERM")
	flag.IntVar(&h.strays, "strays", 0, "start so many in sessions of their own, which ignore SIGTERM")
	flag.DurationVar(&h.life, "life", 0, "end after so long")
	flag.IntVar(&h.code, "code", 0, "and with this exit code")
	flag.BoolVar(&h.tidy, "tidy", false, "close all inherited files but the standard ones, and so have children do")
	flag.IntVar(&h.root, "root", 0, "be a child of this process")
	flag.Parse()
	code, err := h.work()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(exitBroken)
	}
	os.Exit(code)
}

// longest is the longest life of a worker. Without it, a worker could run forever if a battery is
// killed while it tests a flaw.
const longest = 20 * time.Minute

var began = time.Now()

// exitBroken differs from all exit codes of tenure.
const exitBroken = 70

// work returns the exit code.
func (h *behavior) work() (int, error) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	if h.tidy {
		closeInherited()
	}
	w, err := h.open()
	if err != nil {
		return 0, err
	}
	if h.ticks != "" {
		if err := h.writeTick(); err != nil {
			return 0, err
		}
	}
	if h.root == 0 {
		if err := w.write(witness.Began); err != nil {
			return 0, err
		}
	}
	if err := w.write(witness.Act); err != nil {
		return 0, err
	}
	if err := h.fork(); err != nil {
		return 0, err
	}
	return h.act(w, asked)
}

// writeTick writes a line that says which tick this worker runs, by what tenure cron sets.
func (h *behavior) writeTick() error {
	f, err := os.OpenFile(h.ticks, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, os.Getpid(), os.Getenv("TENURE_TICK"), os.Getenv("TENURE_ATTEMPT"), os.Getenv("TENURE_JOB"))
	return errors.Join(err, f.Close())
}

// act writes acts until the end of life, until the time to stop after SIGTERM has passed, or until
// the output has no reader.
func (h *behavior) act(w *writer, asked <-chan os.Signal) (int, error) {
	pace := time.NewTicker(h.pace)
	defer pace.Stop()
	var end <-chan time.Time
	if h.life > 0 {
		end = time.After(h.life)
	}
	code, wanted := h.code, time.NewTicker(time.Second)
	defer wanted.Stop()
	for {
		select {
		case <-wanted.C:
			if _, err := os.Stat(h.journal); err != nil || time.Since(began) > longest {
				return 0, errors.New("nobody wants this worker any more")
			}
		case <-pace.C:
			if err := w.write(witness.Act); err != nil {
				return 0, err
			}
		case <-asked:
			if err := w.write(witness.Asked); err != nil {
				return 0, err
			}
			if !h.deaf {
				code, end = 0, time.After(h.stop)
			}
		case <-end:
			return code, w.write(witness.Ended)
		}
	}
}

// fork starts the children, and does not wait for them.
func (h *behavior) fork() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range h.children + h.strays {
		child := exec.Command(self, "-journal", h.journal, "-pace", h.pace.String(), "-deaf", "-root", strconv.Itoa(os.Getpid()))
		child.Stderr = os.Stderr
		if i >= h.children {
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		}
		if err := child.Start(); err != nil {
			return err
		}
	}
	return nil
}

// writer holds the fields that all records of a process share.
type writer struct {
	journal *witness.Writer
	same    witness.Record
}

// open opens the journal. It takes the token and the candidate's number, which ends the candidate's
// name, from the environment that tenure sets.
func (h *behavior) open() (*writer, error) {
	token, err := strconv.ParseUint(os.Getenv("TENURE_TOKEN"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("TENURE_TOKEN: %w", err)
	}
	number, err := strconv.ParseUint(strings.TrimLeft(os.Getenv("TENURE_ID"), "abcdefghijklmnopqrstuvwxyz-"), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("TENURE_ID: %w", err)
	}
	root := h.root
	if root == 0 {
		root = os.Getpid()
	}
	j, err := witness.Open(h.journal)
	return &writer{j, witness.Record{Token: token, Candidate: uint32(number), PID: uint32(os.Getpid()), Root: uint32(root)}}, err
}

func (w *writer) write(what witness.What) error {
	r := w.same
	r.At, r.What = machine.Now(), what
	return w.journal.Write(r)
}

// closeInherited closes all inherited files except the standard ones. They have no close-on-exec
// flag. The files that this process has opened itself have that flag.
func closeInherited() {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0); errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			_ = syscall.Close(fd)
		}
	}
}
