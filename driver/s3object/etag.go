package s3object

import (
	"context"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

// version is an ETag without its quotes. A proxy that compresses marks it as weak; the server does
// not know that mark.
func version(etag *string) driver.Version {
	if etag == nil {
		return ""
	}
	return driver.Version(strings.Trim(strings.TrimPrefix(*etag, "W/"), `"`))
}

// header returns a version in its form for If-Match.
func header(v driver.Version, bare bool) string {
	if bare {
		return string(v)
	}
	return `"` + string(v) + `"`
}

// form is how versions are written in If-Match: with quotes as the standard says, or bare. All keys
// use the same form.
type form struct {
	mu   sync.Mutex
	bare bool
	// a swap was applied in this form, or the server ignores the other one
	settled bool
	proving bool                      // the other one is being tried
	doubts  map[string]driver.Version // by key, the version from which the last swap was refused
}

// maxDoubts bounds the memory for keys that are not read again.
const maxDoubts = 1024

func (f *form) isBare() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bare
}

// applied keeps the form: it works.
func (f *form) applied(bare bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bare, f.settled, f.doubts = bare, true, nil
}

// refused records a swap that was refused because of the version. The version may have changed.
func (f *form) refused(key string, prev driver.Version, bare bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled || bare != f.bare {
		return
	}
	if f.doubts == nil || len(f.doubts) >= maxDoubts {
		f.doubts = map[string]driver.Version{}
	}
	f.doubts[key] = prev
}

// doubt returns the version from which the last swap of a key was refused, if the form may be the
// reason. A read must ask before it is sent: the answer to an earlier one may show that version
// rightly.
func (f *form) doubt(key string) driver.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doubts[key]
}

// begin settles a doubt by the version that a later read showed. If the refusal had no other
// reason, it returns the other form, which the caller tries; only one caller at a time gets it.
func (f *form) begin(key string, doubt, now driver.Version) (other, try bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.doubts[key] == doubt {
		delete(f.doubts, key)
	}
	if f.settled || f.proving || doubt != now {
		return false, false
	}
	f.proving = true
	return !f.bare, true
}

// end takes the result of the trial.
func (f *form) end(other bool, result treatment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proving = false
	switch {
	case f.settled:
	case result == heeded:
		f.bare, f.doubts = other, nil
	case result == ignored:
		f.settled = true
	}
}

// treatment is how a server treats a condition that is not met.
type treatment int

const (
	unclear treatment = iota
	heeded
	ignored
)

// resolve is called after a read that was sent after a swap had been refused. If the cell still has
// the version that the swap expected, the server did not understand the condition, and the other
// form may be the right one. Since a server may ignore conditions that it does not understand, that
// form is used only if it can refuse.
func (s *Store) resolve(ctx context.Context, key string, doubt, now driver.Version) {
	other, try := s.form.begin(key, doubt, now)
	if !try {
		return
	}
	s.form.end(other, s.try(ctx, conditionsKey(key), condition{now, other}))
}

// try returns how the server treats a condition that the object does not meet. It first makes sure
// that the object exists.
func (s *Store) try(ctx context.Context, key string, c condition) treatment {
	if result, _ := s.violate(ctx, key, condition{}); result == unclear {
		return unclear
	}
	result, _ := s.violate(ctx, key, c)
	return result
}
