// Package witness stands outside of an election, records what leaders do, and judges whether two
// of them led at the same time. Tests, the battery and the demo use it. The simulation has its own
// checker, because its time is virtual.
//
//	journal.go  a file to which processes append their acts, and a reader that follows it
//	book.go     acts in memory, and the pairs of terms that overlap
//	verdict.go  the judge of a book and of a journal
package witness

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Book keeps the acts of leaders in memory. The zero Book is empty. Several goroutines may use it.
//
// The stamp of an act is read before the leader asks whether it may act, so the answer is never
// older than the stamp. A yes whose stamp is later than the first act of a newer term is therefore
// wrong, however late the machine schedules the processes.
type Book struct {
	mu    sync.Mutex
	terms map[string][]*term // by election
}

// Span is the time in which one process used one token. First and Last are stamps.
type Span struct {
	Who         string
	Token       uint64
	First, Last int64
}

// term is a span with its acts, sorted, and the terms that are known to overlap with it.
type term struct {
	Span
	acts     []int64
	overlaps map[*term]bool
}

// Add notes acts of one process with one token, in any order. It returns the pairs of terms that
// these acts are the first to show as overlapping. Stamps are nanoseconds of a clock that all
// processes share, and tokens are above 0.
func (b *Book) Add(election, who string, token uint64, stamps ...int64) (found []Overlap) {
	if len(stamps) == 0 {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.term(election, who, token)
	for _, at := range stamps {
		i, _ := slices.BinarySearch(t.acts, at)
		t.acts = slices.Insert(t.acts, i, at)
	}
	t.First, t.Last = t.acts[0], t.acts[len(t.acts)-1]
	for _, other := range b.terms[election] {
		if o, ok := overlap(t.Span, other.Span); ok && other != t && !t.overlaps[other] {
			t.overlaps[other], other.overlaps[t] = true, true
			found = append(found, o)
		}
	}
	return found
}

func (b *Book) term(election, who string, token uint64) *term {
	if b.terms == nil {
		b.terms = map[string][]*term{}
	}
	for _, t := range b.terms[election] {
		if t.Who == who && t.Token == token {
			return t
		}
	}
	t := &term{Span: Span{Who: who, Token: token}, overlaps: map[*term]bool{}}
	b.terms[election] = append(b.terms[election], t)
	return t
}

// Overlap is a pair of terms of which both were used at once, or whose tokens do not grow.
type Overlap struct{ Older, Newer Span }

// overlap orders two terms by their tokens. The rule is: a token belongs to one process, and each
// act with a lower token comes before each act with a higher one.
func overlap(s, t Span) (Overlap, bool) {
	if s.Token > t.Token || s.Token == t.Token && s.First > t.First {
		s, t = t, s
	}
	return Overlap{s, t}, s.Token == t.Token || s.Last >= t.First
}

func (o Overlap) String() string {
	if o.Older.Token == o.Newer.Token {
		return fmt.Sprintf("%s and %s both act in term %d", o.Older.Who, o.Newer.Who, o.Older.Token)
	}
	late := time.Duration(o.Older.Last - o.Newer.First)
	return fmt.Sprintf("%s acts in term %d %v after %s first acted in term %d",
		o.Older.Who, o.Older.Token, late, o.Newer.Who, o.Newer.Token)
}
