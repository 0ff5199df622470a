// Package witness stands outside of an election, records what leaders do, and judges whether two
// of them led at the same time. Tests, the battery and the demo use it. The simulation has its own
// checker, because its time is virtual.
//
//	journal.go  a file to which processes append their acts, and a reader that follows it
//	book.go     acts in memory, and the pairs of terms that overlap
//	verdict.go  the judge of a book and of a journal
package witness

import (
	"cmp"
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

// Verdict counts what is wrong with the acts of leaders.
type Verdict struct {
	Terms, Acts int
	// Stale counts the acts at or after the first act of a term that began later.
	Stale int
	// Overlap is the longest time from such a first act to a stale act.
	Overlap time.Duration
	// Regressed counts the terms whose token is not above those of all terms that began before.
	Regressed int
	// AfterEnd counts the acts that a process wrote into a journal after its own end.
	AfterEnd int
}

// Safe reports whether nothing is wrong.
func (v Verdict) Safe() bool { return v.Stale == 0 && v.Regressed == 0 && v.AfterEnd == 0 }

// Plus adds the verdict on other elections.
func (v Verdict) Plus(w Verdict) Verdict {
	return Verdict{
		Terms: v.Terms + w.Terms, Acts: v.Acts + w.Acts,
		Stale: v.Stale + w.Stale, Overlap: max(v.Overlap, w.Overlap),
		Regressed: v.Regressed + w.Regressed, AfterEnd: v.AfterEnd + w.AfterEnd,
	}
}

func (v Verdict) String() string {
	return fmt.Sprintf("%d of %d acts came after the first act of a later term, up to %v after it; "+
		"%d of %d tokens did not grow; %d acts came after the end of their process",
		v.Stale, v.Acts, v.Overlap, v.Regressed, v.Terms, v.AfterEnd)
}

// Judge judges all acts noted so far.
func (b *Book) Judge() (v Verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, terms := range b.terms {
		v.add(slices.SortedFunc(slices.Values(terms), func(s, t *term) int {
			return cmp.Or(cmp.Compare(s.First, t.First), cmp.Compare(s.Token, t.Token))
		}))
	}
	return v
}

// add judges one election. The terms are in the order in which they began, so that the next one
// begins earliest of all that follow.
func (v *Verdict) add(terms []*term) {
	highest := uint64(0)
	for i, t := range terms {
		v.Terms++
		v.Acts += len(t.acts)
		if t.Token <= highest {
			v.Regressed++
		}
		highest = max(highest, t.Token)
		if i+1 < len(terms) {
			next := terms[i+1].First
			valid, _ := slices.BinarySearch(t.acts, next)
			v.Stale += len(t.acts) - valid
			v.Overlap = max(v.Overlap, time.Duration(t.Last-next))
		}
	}
}

// Judge judges the journal of one election, by the stamps and by the order of the records.
// Of two counts of the same fault it takes the higher one.
func Judge(records []Record) Verdict {
	v, order := ByTime(records), ByOrder(records)
	v.Stale, v.Regressed = max(v.Stale, order.Stale), max(v.Regressed, order.Regressed)
	return v
}

// ByTime judges a journal by the stamps of its acts: did a process act when it no longer led?
func ByTime(records []Record) Verdict {
	return judge(records, func(_ int, r Record) int64 { return r.At })
}

// ByOrder judges a journal by the places of its acts: would a resource have received an act of an
// older term after one of a newer term? Only this finds a process that was suspended between the
// stamp and the record. Overlap is 0, because places are not times.
func ByOrder(records []Record) Verdict {
	v := judge(records, func(place int, _ Record) int64 { return int64(place) })
	v.Overlap = 0
	return v
}

// judge counts the process that tenure started, and all its descendants, as one. Their acts with
// one token are one term.
func judge(records []Record, when func(place int, r Record) int64) Verdict {
	late, ended, acts := 0, map[Record]bool{}, map[Record][]int64{}
	for i, r := range records {
		by := r
		by.At, by.What = 0, 0
		switch r.What {
		case Ended:
			ended[by] = true
		case Act:
			if ended[by] {
				late++
			}
			acts[by] = append(acts[by], when(i, r))
		}
	}
	var b Book
	for by, stamps := range acts {
		b.Add("", fmt.Sprintf("c%d, process %d", by.Candidate, by.Root), by.Token, stamps...)
	}
	v := b.Judge()
	v.AfterEnd = late
	return v
}
