package dashboard

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// history keeps the terms and events of all elections in a file, across restarts. The zero history
// has no file, and keeps nothing.
type history struct {
	out  historyFile
	gaps []gap
	// outages are those of each store from before the start.
	outages map[string][]outage

	mu      sync.Mutex
	pasts   map[key]past // of elections that are not observed yet; each stays as it was loaded
	unsaved bytes.Buffer // lines
	lost    bool         // unsaved lines were dropped: a rewrite is due
	damage  string       // the damage of the file at the start
	trouble string       // why the file cannot be written now
}

// line is one line of the file, a JSON object. The first line names the format. A line with a term
// or an event replaces an earlier line about it. The file is complete up to the last time in a
// Seen, except for the gaps.
type line struct {
	Format int        `json:"tenure_dashboard_history,omitempty"`
	Source string     `json:"source,omitempty"`
	Name   string     `json:"name,omitempty"`
	Term   *term      `json:"term,omitempty"`
	Event  *event     `json:"event,omitempty"`
	Gap    *gap       `json:"gap,omitempty"`
	Outage *outage    `json:"outage,omitempty"`
	Seen   *time.Time `json:"seen,omitempty"`
}

// gap is a time in which the dashboard did not run.
type gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// past holds the terms and events of an election from before the start.
type past struct {
	terms  []term
	events []event
}

const (
	historyFormat = 1
	maxGaps       = 50
	// forgetAfter is how long an election is kept after its last event.
	forgetAfter = 90 * 24 * time.Hour
	// maxUnsaved bounds the memory for unsaved lines if the disk is slow or full, in bytes.
	maxUnsaved = 8 << 20
)

// openHistory reads the file, or creates one. A damaged file is kept under another name, and the
// readable part of it is used. An error names the remedy.
func openHistory(path string, now time.Time) (*history, error) {
	h := &history{pasts: map[key]past{}, outages: map[string][]outage{}}
	err := h.open(path, now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("the directory %s does not exist: make it", filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission):
		err = fmt.Errorf("%w: this user must be able to read the file, and to write to its directory", err)
	}
	if err != nil {
		return nil, fmt.Errorf("dashboard: history %s: %w", path, err)
	}
	return h, nil
}

func (h *history) open(path string, now time.Time) (err error) {
	if h.out.path, err = realPath(path); err != nil {
		return err
	}
	if h.out.unlock, err = lockFile(h.out.path + ".lock"); err != nil {
		return err
	}
	if err = h.load(now); err == nil {
		err = h.rewrite(nil, now)
	}
	if err != nil {
		h.out.unlock()
	}
	return err
}

func (h *history) load(now time.Time) error {
	info, err := os.Stat(h.out.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // opening a pipe would wait, and a device must not be replaced
		return errors.New("it is no regular file: give another one")
	}
	f, err := os.Open(h.out.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	seen, err := h.read(f)
	var damaged errDamaged
	if errors.As(err, &damaged) {
		aside := h.out.path + ".damaged-" + now.UTC().Format("20060102T150405Z")
		h.damage = fmt.Sprintf("the history was damaged in line %d: see %s", damaged, aside)
		err = os.Rename(h.out.path, aside)
	}
	if err != nil || seen.IsZero() {
		return err
	}
	h.take(&line{Gap: &gap{seen, now}})
	for _, p := range h.pasts {
		p.end(seen)
	}
	for _, all := range h.outages {
		if last := &all[len(all)-1]; last.To == nil {
			last.To = &seen
		}
	}
	h.forgetOld(seen)
	return nil
}

// end closes an open term. The term is opened again if its leader still leads. No term ends before
// it begins, even if the clock went back.
func (p past) end(seen time.Time) {
	for i := range p.terms {
		t := &p.terms[i]
		if t.To == nil && i == len(p.terms)-1 {
			t.To, t.Ended = &seen, endUnknown
		}
		if t.To != nil && t.To.Before(t.From) {
			from := t.From
			t.To = &from
		}
	}
}

// last returns the time of the last term or event.
func (p past) last() (at time.Time) {
	if n := len(p.terms); n > 0 {
		at = p.terms[n-1].From
		if to := p.terms[n-1].To; to != nil {
			at = *to
		}
	}
	if n := len(p.events); n > 0 && p.events[n-1].At.After(at) {
		at = p.events[n-1].At
	}
	return at
}

// forgetOld drops elections without a recent event, and the oldest ones if there are too many.
func (h *history) forgetOld(now time.Time) {
	maps.DeleteFunc(h.pasts, func(_ key, p past) bool { return now.Sub(p.last()) > forgetAfter })
	excess := len(h.pasts) - maxElections
	if excess <= 0 {
		return
	}
	oldest := slices.SortedFunc(maps.Keys(h.pasts), func(a, b key) int { return h.pasts[a].last().Compare(h.pasts[b].last()) })
	for _, k := range oldest[:excess] {
		delete(h.pasts, k)
	}
}

// errDamaged is the number of a line that cannot be read.
type errDamaged int

func (e errDamaged) Error() string { return fmt.Sprintf("line %d is damaged", int(e)) }

// read applies the lines, and returns until when the elections were seen. It skips an incomplete
// last line: the dashboard was killed while it wrote. Even a new file has a first line.
func (h *history) read(r io.Reader) (seen time.Time, err error) {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && n > 1:
			return seen, nil
		case err != nil && !errors.Is(err, io.EOF):
			return seen, err
		}
		var l line
		if json.Unmarshal(text, &l) != nil || (l.Format > 0) != (n == 1) {
			return seen, errDamaged(n)
		}
		if l.Format > historyFormat {
			return seen, errors.New("a later version of the dashboard has written it: run that one, or give another file")
		}
		if l.Seen != nil {
			seen = *l.Seen
		}
		h.take(&l)
	}
}

func (h *history) take(l *line) {
	if l.Gap != nil {
		if !l.Gap.To.Before(l.Gap.From) { // otherwise the clock went back
			h.gaps = bounded(append(h.gaps, *l.Gap), maxGaps)
		}
		return
	}
	if o := l.Outage; o != nil {
		same := func(was outage) bool { return was.From.Equal(o.From) }
		h.outages[l.Source] = replaceOrAppend(h.outages[l.Source], *o, maxOutages, same)
		return
	}
	k := key{l.Source, l.Name}
	p := h.pasts[k]
	switch {
	case l.Term != nil:
		p.terms = replaceOrAppend(p.terms, *l.Term, maxTerms, func(t term) bool { return t.ID == l.Term.ID && t.Term == l.Term.Term && t.Leader == l.Term.Leader })
	case l.Event != nil:
		p.events = replaceOrAppend(p.events, *l.Event, maxEvents, func(e event) bool { return e.ID == l.Event.ID })
	default:
		return
	}
	h.pasts[k] = p
}

// replaceOrAppend replaces the item for which same is true, or adds one.
func replaceOrAppend[T any](all []T, one T, most int, same func(T) bool) []T {
	for i := range slices.Backward(all) {
		if same(all[i]) {
			all[i] = one
			return all
		}
	}
	return bounded(append(all, one), most)
}

// of returns a copy of the past of an election. Call forget once the election is observed.
func (h *history) of(k key) past {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pasts[k]
	return past{clone(p.terms), clone(p.events)}
}

// outagesOf returns a copy of the outages of a store from before the start.
func (h *history) outagesOf(source string) []outage { return clone(h.outages[source]) }

func (h *history) forget(k key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pasts, k)
}

// add queues a line, which is saved within saveEvery.
func (h *history) add(l line) {
	if h.out.path == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost = h.lost || h.unsaved.Len() >= maxUnsaved; !h.lost {
		h.unsaved.Write(encodeLine(l))
	}
}

func encodeLine(l line) []byte { return append(encode(l), '\n') }

// unseen returns the gaps that end after the given time.
func (h *history) unseen(after time.Time) []gap {
	return slices.DeleteFunc(clone(h.gaps), func(g gap) bool { return g.To.Before(after) })
}

// problem returns the problem with the file, or an empty text.
func (h *history) problem() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return cmp.Or(h.trouble, h.damage)
}
