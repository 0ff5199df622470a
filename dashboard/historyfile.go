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
	path             string
	unlock           func()
	file             *os.File
	size             int64
	sizeAfterRewrite int64 // its size after the last rewrite
	saves            int
}

const (
	// saveEvery is the time between two saves: a crash loses at most that much.
	saveEvery = time.Second
	// seenEverySaves is after how many saves a line with Seen is written.
	seenEverySaves = 30
	// minGrowth is the minimum growth of the file, in bytes, before it is rewritten without
	// outdated lines. Before that it also doubles.
	minGrowth = 4 << 20
)

// run saves until ctx ends, and then once more. The function all passes the lines of all observed
// elections. Run calls changed when its trouble changes.
func (h *history) run(ctx context.Context, all func(add func(line)), changed func()) {
	if h.out.path == "" {
		return
	}
	defer h.out.unlock()
	each := time.NewTicker(saveEvery)
	defer each.Stop()
	for ctx.Err() == nil {
		select {
		case <-each.C:
			h.report(h.save(all, time.Now()), changed)
		case <-ctx.Done():
		}
	}
	h.out.saves = 0 // so that the last save writes a line with Seen
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
	due := h.lost || h.out.size > h.out.sizeAfterRewrite+max(h.out.sizeAfterRewrite, minGrowth)
	h.mu.Unlock()
	if due || !h.out.unchanged() {
		if err := h.rewrite(all, now); err != nil {
			return err
		}
	}
	if h.out.saves%seenEverySaves == 0 {
		h.add(line{Seen: &now})
	}
	h.mu.Lock()
	text := bytes.Clone(h.unsaved.Bytes())
	if h.lost { // since the rewrite: the unsaved lines are older than the dropped ones
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

// append writes the lines. If that fails, it truncates the file, because an incomplete line would
// be damage.
func (f *historyFile) append(text []byte) error {
	n, err := f.file.Write(text)
	if err != nil {
		return errors.Join(err, f.file.Truncate(f.size))
	}
	f.size += int64(n)
	return nil
}

// rewrite replaces the file by one with all that is known. That includes the lines that are unsaved
// by now. They must not be appended again: an older line would replace a newer one.
func (h *history) rewrite(all func(add func(line)), now time.Time) error {
	h.mu.Lock()
	h.lost = false // a line that is dropped from now on may be missing in the file
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

// realPath follows links, also a link to a file that does not exist yet, so that each file has one
// name.
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

// replace writes a new file, syncs it and renames it to the old name.
func (f *historyFile) replace(write func(w *bufio.Writer)) error {
	path := f.path + ".new"
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a crash
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
	f.file, f.size, f.sizeAfterRewrite = fresh, size, size
	return nil
}

// unchanged reports whether the file at the path is still the one that this process wrote, with the
// same size.
func (f *historyFile) unchanged() bool {
	is, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	was, err := f.file.Stat()
	return err == nil && os.SameFile(is, was) && is.Size() == f.size
}

// remember writes all that is known. It holds no lock, since the disk may hang. The writer keeps
// errors.
func (h *history) remember(w *bufio.Writer, all func(add func(line)), now time.Time) {
	add := func(l line) { _, _ = w.Write(encodeLine(l)) }
	add(line{Format: historyFormat})
	for _, g := range h.gaps {
		add(line{Gap: &g})
	}
	if all == nil { // at the start: later the sources have them
		for name, of := range h.outages {
			rememberOutages(name, of, add)
		}
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

func rememberOutages(source string, all []outage, add func(line)) {
	for i := range all {
		add(line{Source: source, Outage: &all[i]})
	}
}

func (p past) write(k key, add func(line)) {
	for i := range p.terms {
		add(line{Source: k.Source, Name: k.Name, Term: &p.terms[i]})
	}
	for i := range p.events {
		add(line{Source: k.Source, Name: k.Name, Event: &p.events[i]})
	}
}
