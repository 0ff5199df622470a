package natskv

import (
	"bytes"
	"time"
)

const (
	// While a stream elects its leader, requests vanish: for 4 to 8 s as a rule, and nothing is wrong with the connection.
	silentFor = 4 * time.Second
	// A server that says that it does not reach the others may be the only one.
	inVainFor = 2 * time.Second
	// newStretch is how long after a failure the next one has nothing to do with it.
	newStretch = 10 * time.Second
)

// stretch is a time in which no request succeeded. Its zero value is none.
type stretch struct {
	since, last time.Time
	told        bool // the server has said why
}

func (s *stretch) add(began time.Time, told bool) {
	now := time.Now()
	if !s.live() {
		*s = stretch{since: began}
	}
	s.last, s.told = now, s.told || told
}

// live reports whether the next failure belongs to the stretch.
func (s *stretch) live() bool { return !s.since.IsZero() && time.Since(s.last) <= newStretch }

// age is 0 if the stretch is over.
func (s *stretch) age() time.Duration {
	if !s.live() {
		return 0
	}
	return time.Since(s.since)
}

// outlasts reports whether stretches, as far as they belong to the connection made at that time, are reason enough to leave it.
func outlasts(made time.Time, stretches ...stretch) bool {
	limit, age := silentFor, time.Duration(0)
	for _, s := range stretches {
		if s.live() && s.told {
			limit = inVainFor
		}
		age = max(age, s.age())
	}
	return min(age, time.Since(made)) >= limit
}

// task is what a request is for.
type task int

const (
	reading task = iota
	writing
	asking // for anything else
	tasks
)

// inVain reports whether a server answers that it cannot do what it was asked for now: it has no leader, or, to a write, it
// has an earlier one under way. The answer to a write is short, and any other shows data in base64 only.
func inVain(answer []byte, what task) bool {
	return bytes.Contains(answer, []byte(`"code":503`)) ||
		what == writing && (bytes.Contains(answer, []byte(`"err_code":10164`)) || bytes.Contains(answer, []byte(`"err_code":10158`)))
}

// refused reports whether a write was answered by an error.
func refused(answer []byte) bool { return bytes.Contains(answer, []byte(`"error":`)) }
