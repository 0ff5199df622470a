package demo

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/internal/witness"
)

// acts counts all acts, and passes them to the witness, which detects overlaps.
type acts struct {
	book        witness.Book
	n, overlaps int
	last        map[uint64]stamp.Time // by token
}

// add takes one act of a candidate's process, in any order, and returns the overlaps that it shows.
func (a *acts) add(token uint64, id string, pid int, at stamp.Time) []witness.Overlap {
	a.n++
	a.last[token] = max(a.last[token], at)
	found := a.book.Add("", fmt.Sprintf("%s (process %d)", id, pid), token, int64(at))
	a.overlaps += len(found)
	return found
}

// lastOf returns the time of the last act with a token; false if there was none.
func (a *acts) lastOf(token uint64) (stamp.Time, bool) {
	at, ok := a.last[token]
	return at, ok
}

// idOf returns the ID of the candidate that the witness names.
func idOf(s witness.Span) string {
	id, _, _ := strings.Cut(s.Who, " ")
	return id
}
