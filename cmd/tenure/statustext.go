package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
)

// print writes the status as text, with a line for each known fact.
func (st standing) print(out io.Writer) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(out, "%-9s %s\n", name, output.Plain(fmt.Sprintf(format, args...)))
	}
	defer st.present.print(row, st.Time)
	row("election", "%s", st.Election)
	row("store", "%s", st.Store)
	if st.Leader == "" {
		row("leader", "nobody")
		row("record", "%s", st.history())
		return
	}
	row("leader", "%s in term %d", st.Leader, st.Term)
	if st.Address != "" {
		row("address", "%s", st.Address)
	}
	row("renewed", "%s", st.renewal())
	row("lease", "%s", st.lease())
	if st.Priority != 0 {
		row("priority", "%d", st.Priority)
	}
	if q := st.Request; q != nil {
		row("asked", "%s", records.Request{To: q.To, By: q.By, Offer: q.Offer}.Asked())
	}
	for _, key := range slices.Sorted(maps.Keys(st.Metadata)) {
		row("metadata", "%s=%s", key, st.Metadata[key])
	}
}

// history describes the record of an election without a leader.
func (st standing) history() string {
	switch st.Record {
	case admin.Absent:
		return "there is none"
	case admin.Vacant:
		return fmt.Sprintf("vacant after term %d; candidates wait %v before they claim", st.Term, millis(st.LeaseMillis))
	case admin.Released:
		return fmt.Sprintf("released by %s in term %d", st.From, st.Term)
	case admin.Held:
		return fmt.Sprintf("%s held it in term %d; its lease of %v has run out", st.From, st.Term, millis(st.LeaseMillis))
	}
	return string(st.Record)
}

// renewal returns when the leader has renewed its lease for the last time.
func (st standing) renewal() string {
	if st.unconfirmed() {
		return st.notRenewed()
	}
	var all []string
	if st.Confirmed {
		all = append(all, "just now")
	}
	if st.Renewed != nil {
		switch age := st.Time.Sub(*st.Renewed).Round(100 * time.Millisecond); {
		case age.Abs() > aYear:
			all = append(all, "on "+st.Renewed.Format(time.DateOnly)+" by the leader's clock, which is wrong")
		case age < 0:
			all = append(all, fmt.Sprintf("in %v by the leader's clock", -age))
		default:
			all = append(all, fmt.Sprintf("%v ago by the leader's clock", age))
		}
	}
	return strings.Join(all, ", ")
}

// notRenewed returns when the record was written, if its leader was not seen to renew.
func (st standing) notRenewed() string {
	switch {
	case st.Renewed == nil:
		return story.NotConfirmed(time.Time{}, st.Time)
	case st.Time.Sub(*st.Renewed).Abs() > aYear:
		return "not confirmed: last written on " + st.Renewed.Format(time.DateOnly) + ", by its writer's clock"
	}
	return story.NotConfirmed(*st.Renewed, st.Time)
}

// aYear is the age above which renewal prints a date.
const aYear = 365 * 24 * time.Hour

func (st standing) lease() string {
	text := millis(st.LeaseMillis).String()
	if st.LeftMillis != nil {
		text += fmt.Sprintf("; %v left by that clock", millis(*st.LeftMillis).Round(100*time.Millisecond))
	}
	return text + fmt.Sprintf("; %v at the most, unless it is renewed", millis(st.MostMillis).Round(100*time.Millisecond))
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
