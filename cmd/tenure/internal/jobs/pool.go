//go:build unix

package jobs

import (
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

// worker is a guard for one run.
type worker struct {
	*guard.Guard
	// out and errs have the output of the command; nil: it has the files of this process.
	out, errs *os.File
}

// pool keeps one guard ready, so that a run need not wait until one has started.
type pool struct {
	command func() *exec.Cmd
	piped   bool // the output of commands goes through this process
	failed  func(error)

	mu       sync.Mutex
	spare    *worker
	starting bool
	closed   bool
	tasks    sync.WaitGroup
}

// take returns the spare guard, or a new one, and starts another.
func (p *pool) take() (*worker, error) {
	p.mu.Lock()
	w := p.spare
	p.spare = nil
	p.mu.Unlock()
	defer func() { p.tasks.Go(p.refill) }()
	if w != nil && !w.Gone() {
		return w, nil
	}
	return p.start()
}

// refill starts the spare guard, unless there is one.
func (p *pool) refill() {
	p.mu.Lock()
	if p.starting || p.closed || p.spare != nil && !p.spare.Gone() {
		p.mu.Unlock()
		return
	}
	p.starting = true
	p.mu.Unlock()
	w, err := p.start()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting = false
	switch {
	case err != nil:
		p.failed(err)
	case p.closed:
		p.done(w)
		w.unread()
	default:
		p.spare = w
	}
}

// start starts a guard. Its commands read nothing.
func (p *pool) start() (*worker, error) {
	c, w := p.command(), &worker{}
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if p.piped {
		var theirs [2]*os.File
		var err error
		if w.out, theirs[0], err = os.Pipe(); err == nil {
			w.errs, theirs[1], err = os.Pipe()
		}
		defer func() { _, _ = theirs[0].Close(), theirs[1].Close() }() // a nil file can be closed
		if err != nil {
			w.unread()
			return nil, err
		}
		c.Stdout, c.Stderr = theirs[0], theirs[1]
	}
	g, err := guard.Start(c)
	if err != nil {
		w.unread()
		return nil, err
	}
	w.Guard = g
	return w, nil
}

// unread closes the output of a guard that runs no command.
func (w *worker) unread() { _, _ = w.out.Close(), w.errs.Close() }

// done ends the guard of a run that is over, in the background.
func (p *pool) done(w *worker) { p.tasks.Go(w.Close) }

// show passes the output of the command on, with a prefix, until the guard has ended.
func (p *pool) show(w *worker, prefix string) {
	if w.out == nil {
		return
	}
	p.tasks.Go(func() { passOn(os.Stdout, w.out, prefix) })
	p.tasks.Go(func() { passOn(os.Stderr, w.errs, prefix) })
}

// closeWithin bounds the time to end the guards, and to write the last output.
const closeWithin = 2 * time.Second

// close ends the spare guard, and waits until the last output is written.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	w := p.spare
	p.spare = nil
	p.mu.Unlock()
	if w != nil {
		p.done(w)
		w.unread()
	}
	ended := make(chan struct{})
	go func() {
		p.tasks.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(closeWithin): // the reader of the output hangs
	}
}
