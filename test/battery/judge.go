package main

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/acts"
)

// judgement is what a journal proves: by the times that the acts bear, and by their order in the journal, where one that was held up
// between its stamp and its deed has the place of the deed.
type judgement struct{ byTime, byOrder acts.Verdict }

// author is who acts: a process that tenure started, with all that comes of it.
type author struct {
	candidate, root uint32
	token           uint64
}

// judge goes over a whole journal.
func judge(records []witness.Record) judgement {
	times, places := map[author][]int64{}, map[author][]int64{}
	for i, r := range records {
		if r.What == witness.Act {
			a := author{r.Candidate, r.Root, r.Token}
			times[a], places[a] = append(times[a], r.At), append(places[a], int64(i))
		}
	}
	for _, stamps := range times {
		slices.Sort(stamps) // several processes enter theirs a little out of order
	}
	return judgement{byTime: verdictOn(times), byOrder: verdictOn(places)}
}

func verdictOn(all map[author][]int64) acts.Verdict {
	var book acts.Book
	for a, stamps := range all {
		book.Add("", fmt.Sprintf("c%d, process %d", a.candidate, a.root), a.token, stamps...)
	}
	return book.Judge()
}

// safe reports whether nothing speaks against it.
func (j judgement) safe() bool { return j.byTime.Safe() && j.byOrder.Safe() }

// stale is the number of acts that followed the first act of somebody newer, regressed that of tokens that did not grow.
func (j judgement) stale() int     { return max(j.byTime.Stale, j.byOrder.Stale) }
func (j judgement) regressed() int { return max(j.byTime.Regressed, j.byOrder.Regressed) }

// plus is a judgement on both.
func (j judgement) plus(k judgement) judgement {
	return judgement{j.byTime.Plus(k.byTime), j.byOrder.Plus(k.byOrder)}
}
