package demo

import (
	"io"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/units"
	"github.com/tenure-go/tenure/internal/witness"
)

// jsonLines writes one object per line: the library's events unchanged, and the demo's own objects,
// which begin with the same fields.
type jsonLines struct {
	lineByLine
	out      io.Writer
	election string
}

func (j *jsonLines) head(at time.Time, event, id string, term uint64) output.Head {
	return output.Head{Time: at.UTC(), Event: event, Election: j.election, ID: id, Term: term}
}

func (j *jsonLines) line(v any) { output.JSON(j.out, v) }

func (j *jsonLines) begin(at time.Time, o Options) {
	j.line(struct {
		output.Head
		Do               string `json:"do"`
		Store            string `json:"store"`
		Candidates       int    `json:"candidates"`
		LeaseMillis      int64  `json:"leaseMillis"`
		RenewMillis      int64  `json:"renewMillis"`
		CrashEveryMillis int64  `json:"crashEveryMillis"`
	}{
		j.head(at, "demo", "", 0), "begin", o.Place.String(), o.Candidates,
		o.Lease.Milliseconds(), o.Renew.Milliseconds(), o.CrashEvery.Milliseconds(),
	})
}

func (j *jsonLines) show(e entry, f *failover) {
	if e.deed != nil {
		j.deed(e.deed)
		return
	}
	j.line(e.event.raw)
	if f != nil {
		j.failover(e.event, f)
	}
}

func (j *jsonLines) deed(d *deed) {
	j.line(struct {
		output.Head
		Do      do     `json:"do"`
		Process int    `json:"process,omitempty"`
		Text    string `json:"text,omitempty"`
	}{j.head(d.time, "demo", d.id, d.term), d.do, d.pid, d.text})
}

func (j *jsonLines) failover(e *event, f *failover) {
	j.line(struct {
		output.Head
		Do          string   `json:"do"`
		Kind        kind     `json:"kind"`
		From        string   `json:"from"`
		Millis      float64  `json:"millis"`
		LeastMillis *float64 `json:"leastMillis,omitempty"`
		MostMillis  *float64 `json:"mostMillis,omitempty"`
	}{
		j.head(e.Time, "demo", e.ID, e.Term), "failover", f.kind, f.from, units.Millis(f.took), optional(f.least, f.known),
		optional(f.most, f.most > 0),
	})
}

func (j *jsonLines) overlap(at time.Time, o witness.Overlap) {
	j.line(struct {
		output.Head
		Do        string `json:"do"`
		OlderID   string `json:"olderID"`
		OlderTerm uint64 `json:"olderTerm"`
		Text      string `json:"text"`
	}{j.head(at, "demo", idOf(o.Newer), o.Newer.Token), "overlap", idOf(o.Older), o.Older.Token, o.String()})
}

// kindJSON is one kind of failover in the summary.
type kindJSON struct {
	Kind              kind     `json:"kind"`
	N                 int      `json:"n"`
	MedianMillis      *float64 `json:"medianMillis,omitempty"`
	MaxMillis         *float64 `json:"maxMillis,omitempty"`
	LeastMedianMillis *float64 `json:"leastMedianMillis,omitempty"`
	LeastMaxMillis    *float64 `json:"leastMaxMillis,omitempty"`
	MostMedianMillis  *float64 `json:"mostMedianMillis,omitempty"`
	MostMaxMillis     *float64 `json:"mostMaxMillis,omitempty"`
}

func (j *jsonLines) end(at time.Time, s summary) {
	var ks []kindJSON
	for _, r := range s.rows {
		ks = append(ks, kindJSON{
			r.kind, r.n, optional(r.took.median, r.took.known), optional(r.took.max, r.took.known),
			optional(r.least.median, r.least.known), optional(r.least.max, r.least.known),
			optional(r.most.median, r.most.known), optional(r.most.max, r.most.known),
		})
	}
	j.line(struct {
		output.Head
		Seconds   float64    `json:"seconds"`
		Elections int        `json:"elections"`
		Failovers []kindJSON `json:"failovers"`
		Acts      int        `json:"acts"`
		Overlaps  int        `json:"overlaps"`
	}{
		j.head(at, "summary", "", s.last), s.lasted.Round(time.Millisecond).Seconds(),
		s.elections, ks, s.acts, s.overlaps,
	})
}

func optional(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	ms := units.Millis(d)
	return &ms
}
