package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"time"
)

// historyFile is the file of a history, used by one goroutine.
type historyFile struct {
	path    string
	unlock  func()
	file    *os.File
	size    int64
	compact int64 // its size after the last rewrite
	saves   int
}

const (
	// saveEach is how much of the past a crash may take.
	saveEach = time.Second
	// seenEach is after how many saves the file says that there was nothing else to see.
	seenEach = 30
	// leastGrowth is by how much the file grows, in bytes, before a rewrite leaves out what is
	// forgotten. It at least doubles.
	leastGrowth = 4 << 20
)

// run saves until ctx ends, and then once more. All gives what is observed. It calls changed when
// there is other trouble.
func (h *history) run(ctx context.Context, all func(add func(line)), changed func()) {
	if h == nil {
		return
	}
	defer h.out.unlock()
	each := time.NewTicker(saveEach)
	defer each.Stop()
	for ctx.Err() == nil {
		select {
		case <-each.C:
			h.report(h.save(all, time.Now()), changed)
		case <-ctx.Done():
		}
	}
	h.out.saves = 0 // the last save says until when there was somebody to see
	h.report(h.save(all, time.Now()), changed)
	_ = h.out.file.Close()
}

func (h *history) report(err error, changed func()) {
	trouble := ""
	if err != nil {
		trouble = "the history is not saved: " + err.Error()
	}
	h.mu.Lock()
	news := trouble != h.trouble
	h.trouble = trouble
	h.mu.Unlock()
	if news {
		changed()
	}
}

// save appends the lines that are unsaved, after a rewrite if one is due.
func (h *history) save(all func(add func(line)), now time.Time) error {
	h.mu.Lock()
	due := h.lost || h.out.size > h.out.compact+max(h.out.compact, leastGrowth)
	h.mu.Unlock()
	if due || !h.out.isThere() {
		if err := h.rewrite(all, now); err != nil {
			return err
		}
	}
	if h.out.saves%seenEach == 0 {
		h.add(line{Seen: &now})
	}
	h.mu.Lock()
	text := bytes.Clone(h.unsaved.Bytes())
	if h.lost { // since the rewrite: what waits is older than what was lost
		text = nil
	}
	h.mu.Unlock()
	if err := h.out.append(text); err != nil {
		return err
	}
	h.out.saves++
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unsaved.Next(len(text))
	return nil
}

// append leaves no line that is cut off, which would be damage.
func (f *historyFile) append(text []byte) error {
	n, err := f.file.Write(text)
	if err != nil {
		return errors.Join(err, f.file.Truncate(f.size))
	}
	f.size += int64(n)
	return nil
}

// rewrite replaces the file by one with what is remembered. That has all that is unsaved by now,
// and must not be followed by it: an older line would replace a newer one.
func (h *history) rewrite(all func(add func(line)), now time.Time) error {
	h.mu.Lock()
	h.lost = false // what is dropped from now on may be missing
	h.unsaved.Reset()
	h.mu.Unlock()
	err := h.out.replace(func(w *bufio.Writer) { h.remember(w, all, now) })
	if err != nil {
		h.mu.Lock()
		h.lost = true
		h.mu.Unlock()
	}
	return err
}

// realPath follows links, also one to a file that is not there yet, so that a file has one name.
func realPath(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, filepath.Base(path))
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	to, err := os.Readlink(path)
	switch {
	case err != nil:
		return path, nil
	case filepath.IsAbs(to):
		return realPath(to)
	}
	return realPath(filepath.Join(dir, to))
}

// replace puts a new file in the place of the old one, once the disk has it.
func (f *historyFile) replace(write func(w *bufio.Writer)) error {
	path := f.path + ".new"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a crash
		return err
	}
	fresh, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(fresh)
	write(w)
	size, err := int64(0), errors.Join(w.Flush(), fresh.Sync())
	if err == nil {
		size, err = fresh.Seek(0, io.SeekEnd)
	}
	if err == nil {
		err = os.Rename(path, f.path)
	}
	if err != nil {
		return errors.Join(err, fresh.Close(), os.Remove(path))
	}
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file, f.size, f.compact = fresh, size, size
	return nil
}

// isThere reports whether the file is still the one that was written, and has no more or less.
func (f *historyFile) isThere() bool {
	is, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	was, err := f.file.Stat()
	return err == nil && os.SameFile(is, was) && is.Size() == f.size
}

// remember writes all that is known. No lock is held: the disk may hang. Errors stay in the writer.
func (h *history) remember(w *bufio.Writer, all func(add func(line)), now time.Time) {
	add := func(l line) { _, _ = w.Write(encodeLine(l)) }
	add(line{Format: historyFormat})
	for _, g := range h.gaps {
		add(line{Gap: &g})
	}
	h.mu.Lock()
	pasts := maps.Clone(h.pasts)
	h.mu.Unlock()
	for k, p := range pasts {
		p.write(k, add)
	}
	if all != nil {
		all(add)
	}
	add(line{Seen: &now})
}

func (p past) write(k key, add func(line)) {
	for i := range p.terms {
		add(line{Source: k.Source, Name: k.Name, Term: &p.terms[i]})
	}
	for i := range p.events {
		add(line{Source: k.Source, Name: k.Name, Event: &p.events[i]})
	}
}
