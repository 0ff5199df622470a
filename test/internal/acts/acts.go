// Package acts keeps book of when leaders were told that they may act, and judges from that whether two led at once.
//
// What is booked is a stamp taken before the question, so an answer can only be younger than its stamp. An answer of yes
// whose stamp is later than the election of another leader is wrong, however late the processes were scheduled.
package acts

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Book is all that was booked. The zero Book is empty; its methods may be called from many goroutines.
type Book struct {
	mu    sync.Mutex
	terms map[string][]*term // by election
}

// term is what one leader was told in one term.
type term struct {
	who    string
	token  uint64
	stamps []int64 // in nanoseconds, the first is that of being elected
}

// Add books answers by which a leader may act, in their order. Being told of the election is the first.
func (b *Book) Add(election, who string, token uint64, stamps ...int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.terms == nil {
		b.terms = map[string][]*term{}
	}
	t := b.find(election, who, token)
	t.stamps = append(t.stamps, stamps...)
}

func (b *Book) find(election, who string, token uint64) *term {
	for _, t := range b.terms[election] {
		if t.who == who && t.token == token {
			return t
		}
	}
	t := &term{who: who, token: token}
	b.terms[election] = append(b.terms[election], t)
	return t
}

// Verdict is what a book proves.
type Verdict struct {
	Terms   int
	Answers int
	// Stale is the number of answers asked for after another leader was elected, Overlap the longest time from that
	// election to such an answer.
	Stale   int
	Overlap time.Duration
	// Regressed is the number of terms whose token is not above those of all earlier ones.
	Regressed int
}

// Safe reports whether nothing speaks against it.
func (v Verdict) Safe() bool { return v.Stale == 0 && v.Regressed == 0 }

// Plus is a verdict on both.
func (v Verdict) Plus(w Verdict) Verdict {
	return Verdict{
		Terms: v.Terms + w.Terms, Answers: v.Answers + w.Answers, Stale: v.Stale + w.Stale,
		Regressed: v.Regressed + w.Regressed, Overlap: max(v.Overlap, w.Overlap),
	}
}

// Judge goes over everything booked so far.
func (b *Book) Judge() Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	var v Verdict
	for _, terms := range b.terms {
		terms = slices.Clone(terms)
		slices.SortFunc(terms, func(a, b *term) int { return cmp.Compare(a.first(), b.first()) })
		v.add(terms)
	}
	return v
}

// add judges one election, its terms in the order of their beginnings.
func (v *Verdict) add(terms []*term) {
	highest := uint64(0)
	for i, t := range terms {
		v.Terms++
		v.Answers += len(t.stamps)
		if t.token <= highest {
			v.Regressed++
		}
		highest = max(highest, t.token)
		if i+1 < len(terms) {
			v.compare(t, terms[i+1].first())
		}
	}
}

// compare counts the answers of a term from the election of the next on.
func (v *Verdict) compare(t *term, next int64) {
	valid, _ := slices.BinarySearch(t.stamps, next)
	v.Stale += len(t.stamps) - valid
	v.Overlap = max(v.Overlap, time.Duration(t.last()-next))
}

func (t *term) first() int64 { return t.stamps[0] }
func (t *term) last() int64  { return t.stamps[len(t.stamps)-1] }
