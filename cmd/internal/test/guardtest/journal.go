//go:build unix

package guardtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// Note is one line of a journal. Token is 0 where there is none.
type Note struct {
	At    stamp.Time
	Token uint64
	PID   int
	Name  string
	What  string
}

// Journal holds the notes of several processes. Its methods may be called concurrently.
type Journal struct {
	Path string

	mu    sync.Mutex
	read  int64 // so far
	notes []Note
}

// NewJournal returns the journal in a directory. It is empty if the directory has none.
func NewJournal(dir string) *Journal { return &Journal{Path: filepath.Join(dir, "journal")} }

// Add makes a note now, under a name that is not that of a process.
func (j *Journal) Add(name, what string) {
	if err := j.add(Note{Name: name, What: what}); err != nil {
		panic(err)
	}
}

// add stamps a note and appends it. One system call does that, so lines of several processes do not
// mix.
func (j *Journal) add(n Note) error {
	f, err := os.OpenFile(j.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = fmt.Fprintf(f, "%d %d %d %s %s\n", stamp.Now(), n.Token, os.Getpid(), n.Name, n.What)
	return err
}

// Notes returns all notes so far, in order.
func (j *Journal) Notes() []Note {
	j.mu.Lock()
	defer j.mu.Unlock()
	for more := j.more(); ; {
		line, rest, whole := bytes.Cut(more, []byte("\n"))
		if !whole {
			return j.notes
		}
		var n Note
		if _, err := fmt.Sscan(string(line), &n.At, &n.Token, &n.PID, &n.Name, &n.What); err != nil {
			panic(fmt.Sprintf("%v in %q", err, line))
		}
		j.notes = append(j.notes, n)
		j.read += int64(len(line)) + 1
		more = rest
	}
}

func (j *Journal) more() []byte {
	f, err := os.Open(j.Path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	more, _ := io.ReadAll(io.NewSectionReader(f, j.read, 1<<30))
	return more
}

// all returns the notes of a name, in order. An empty text stands for any.
func (j *Journal) all(name, what string) (all []Note) {
	for _, n := range j.Notes() {
		if n.Name == name && (what == "" || n.What == what) {
			all = append(all, n)
		}
	}
	return all
}

// Find returns the first such note of a name.
func (j *Journal) Find(name, what string) (n Note, ok bool) {
	all := j.all(name, what)
	if len(all) == 0 {
		return Note{}, false
	}
	return all[0], true
}

// Last returns the time of the last such note of a name, or 0 if there is none. An empty text
// stands for any.
func (j *Journal) Last(name, what string) stamp.Time {
	all := j.all(name, what)
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].At
}

// Count returns the number of such notes of a name so far.
func (j *Journal) Count(name, what string) int { return len(j.all(name, what)) }

// Await waits for a note.
func (j *Journal) Await(t *testing.T, name, what string) (n Note) {
	t.Helper()
	wait.Until(t, name+" notes: "+what, func() (ok bool) { n, ok = j.Find(name, what); return ok })
	return n
}

// Workers returns the processes that began under a name, or under any name if it is empty.
func (j *Journal) Workers(name string) (pids []int) {
	for _, n := range j.Notes() {
		if n.What == "begin" && (name == "" || n.Name == name) {
			pids = append(pids, n.PID)
		}
	}
	return pids
}

// Alive returns the first of these processes that still runs; 0 if none does.
func (j *Journal) Alive(name string) (pid int) {
	for _, pid := range j.Workers(name) {
		if runs(pid) {
			return pid
		}
	}
	return 0
}

// AwaitEnd waits until none of these processes runs any more: a process that has ended cannot act.
func (j *Journal) AwaitEnd(t *testing.T, name string) {
	t.Helper()
	wait.Succeeds(t, "the end of the workers", func(context.Context) error {
		if pid := j.Alive(name); pid != 0 {
			return fmt.Errorf("process %d runs on", pid)
		}
		return nil
	})
}
