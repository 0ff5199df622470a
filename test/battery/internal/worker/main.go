// Command worker is the program that the battery lets tenure run: only one copy may work. It writes
// each of its acts into a journal, with the time and its token, and does not ask whether it may
// act.
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

// habits are how a worker behaves.
type habits struct {
	journal  string
	pace     time.Duration
	stop     time.Duration // how long it goes on after SIGTERM
	deaf     bool          // SIGTERM means nothing to it
	children int           // which are deaf
	strays   int           // children in sessions of their own, deaf as well
	life     time.Duration // 0: it goes on
	code     int           // at the end of its life
	tidy     bool          // it closes its inherited files, as daemons do
	root     int           // 0: it is no child
}

func main() {
	var h habits
	flag.StringVar(&h.journal, "journal", "", "append what is done to this file")
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

// longest is the longest life of a worker: none may be left without end, also where a battery is
// killed that tries a tenure with a flaw.
const longest = 20 * time.Minute

var began = time.Now()

// exitBroken is none of the codes that tenure knows.
const exitBroken = 70

// work returns the exit code.
func (h *habits) work() (int, error) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	if h.tidy {
		closeInherited()
	}
	w, err := h.open()
	if err != nil {
		return 0, err
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

// act goes on until the end of its life, or as long after SIGTERM as it takes to stop, or until its
// output has no reader.
func (h *habits) act(w *writer, asked <-chan os.Signal) (int, error) {
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
func (h *habits) fork() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range h.children + h.strays {
		child := exec.Command(self, "-journal", h.journal, "-pace", h.pace.String(), "-deaf", "-root", strconv.Itoa(os.Getpid()))
		child.Stderr = os.Stderr
		if i >= h.children {
			machine.Apart(child)
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

// open takes the token and the candidate's name, whose number comes last, from the environment that
// tenure sets.
func (h *habits) open() (*writer, error) {
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
