package k8slease

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// errRestored is the error of a call that was under way when the history turned out to be another
// one.
var errRestored = errors.New("the API server went back to an older state meanwhile, such as a restored backup of etcd")

// history notices that the API server shows an older state than before, and counts the histories
// that this process has seen. Within one history, the revision rises with each write to the
// cluster, so an answer to a later request cannot have a lower one.
type history struct {
	mu sync.Mutex
	// generation counts the histories.
	generation uint64
	// seen is the highest revision in the generation.
	seen uint64
	// date is the latest time of the API server, in seconds.
	date uint64
	// known are the last states of the elections of this process.
	known map[string]*lease
}

// baseline says what was known before a request was sent.
type baseline struct{ generation, seen, revision uint64 }

// before is called before a request for the Lease of a name, or for all Leases if it is empty.
func (h *history) before(name string) baseline {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := baseline{generation: h.generation, seen: h.seen}
	if l := h.known[name]; l != nil {
		s.revision = l.revision
	}
	return s
}

// last returns the state of a Lease if it is this version.
func (h *history) last(name string, v driver.Version) *lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.known[name]; l != nil && l.version() == v {
		return l
	}
	return nil
}

// read takes the state that a read has shown. The revision of a Lease is that of its last write, so
// it says nothing of other keys. It reports whether another history has begun.
func (h *history) read(s baseline, l *lease) (e driver.Entry, restored bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.generation != h.generation {
		return driver.Entry{}, false, errRestored
	}
	restored = l.revision < s.revision
	if restored {
		h.beginGeneration()
	}
	h.keep(l)
	return h.entry(l), restored, nil
}

// wrote takes the state that a write has made. Its revision is above all earlier ones.
func (h *history) wrote(s baseline, l *lease) (restored bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.generation != h.generation {
		return false, errRestored
	}
	if l.revision <= s.seen {
		h.beginGeneration()
		return true, errRestored
	}
	h.keep(l)
	return false, nil
}

// counted takes the revision of the whole store, which a list shows.
func (h *history) counted(s baseline, revision uint64) (generation uint64, restored bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.generation != h.generation {
		return 0, false, errRestored
	}
	restored = revision < s.seen
	if restored {
		h.beginGeneration()
	}
	h.seen = max(h.seen, revision)
	return h.generation, restored, nil
}

// pushed takes a state that a watch has shown. It returns false if the watch began in another
// history.
func (h *history) pushed(generation uint64, l *lease) (driver.Entry, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if generation != h.generation {
		return driver.Entry{}, false
	}
	h.keep(l)
	return h.entry(l), true
}

// absent returns the entry of a Lease that is absent at a revision. An absence belongs to the era
// of the Lease that was deleted, as far as this process knows it. The first Lease of a name begins
// no other era.
//
// It returns errRestored unless the absence was seen in the present history.
func (h *history) absent(generation uint64, name string, revision uint64) (driver.Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if generation != h.generation {
		return driver.Entry{}, errRestored
	}
	e := driver.Entry{Floor: h.floor(revision), Ceiling: ceiling}
	switch l := h.known[name]; {
	case l != nil:
		e.Era = era(l.uid, h.generation)
	case h.generation > 0:
		e.Era = era("", h.generation)
	}
	return e, nil
}

// progressed takes a revision that a watch has shown, and reports whether it is of this history.
func (h *history) progressed(generation, revision uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if generation == h.generation {
		h.seen = max(h.seen, revision)
	}
	return generation == h.generation
}

// entry returns the Lease as an election sees it. If another elector holds the Lease, the term of
// the last leader of Tenure is in the annotation alone. It is called under the lock.
func (h *history) entry(l *lease) driver.Entry {
	e := driver.Entry{
		Value: l.value(), Version: l.version(), Floor: h.floor(l.revision), Ceiling: ceiling, Era: era(l.uid, h.generation),
	}
	if last, ok := parse([]byte(l.annotations[recordAnnotation])); ok && last.Term < ceiling {
		e.Floor = max(e.Floor, last.Term)
	}
	return e
}

// ceiling is above the floor until 2112, also if the clock of the API server is not set.
const ceiling = 1 << 52

// floor returns the server's time in microseconds plus the revision. The revision alone rises with
// each write. The time keeps the floor rising after etcd was put back to an older state. It is
// called under the lock.
func (h *history) floor(revision uint64) uint64 { return h.date*1_000_000 + revision }

// noteDate takes the time of an answer. It returns false if a floor of that time would not be
// credible.
func (h *history) noteDate(date time.Time) bool {
	seconds := date.Unix()
	if seconds <= 0 || seconds >= ceiling/1_000_000 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.date = max(h.date, uint64(seconds))
	return true
}

// keep is called under the lock.
func (h *history) keep(l *lease) {
	h.seen = max(h.seen, l.revision)
	if last := h.known[l.name]; last != nil && last.revision > l.revision {
		return
	}
	if h.known == nil {
		h.known = map[string]*lease{}
	}
	h.known[l.name] = l
}

// beginGeneration is called under the lock.
func (h *history) beginGeneration() {
	h.generation++
	h.seen = 0
	clear(h.known)
}

// era names the history that a Lease belongs to: that of the object, and of the cluster as far as
// this process has seen.
func era(uid string, generation uint64) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(uid), generation))
	return binary.BigEndian.Uint64(sum[:]) | 1 // never 0
}
