package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
)

func init() { time.Local = time.UTC } // the lines show local time

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func at(millis int) time.Time { return noon.Add(time.Duration(millis) * time.Millisecond) }

// plot is the sequence of an election that an observer sees, in milliseconds from noon.
type plot struct {
	story.Story
	items []item
	seq   int
}

func newPlot() *plot { return &plot{} }

// wrote adds a write of a leader.
func (p *plot) wrote(millis int, leader string, term uint64, more string) {
	p.seq++
	name, _ := json.Marshal(leader)
	p.shows(millis, fmt.Sprintf(`{"leaderID":%s,"term":%d,"leaseMillis":2000,"nonce":"%d"%s}`, name, term, p.seq, more))
}

func (p *plot) shows(millis int, value string) {
	p.add(p.See(driver.Entry{Value: []byte(value)}, true, at(millis)))
}

// event adds an event of the election.
func (p *plot) event(millis int, kind tenure.EventKind, l tenure.Leader, cause error) {
	p.add(p.Hear(tenure.Event{
		Time: at(millis), Kind: kind, Election: "billing", ID: "me", Term: l.Term, Leader: l, Cause: cause,
	}))
}

func (p *plot) add(all []story.Item) {
	for _, i := range all {
		p.items = append(p.items, item{Item: i})
	}
}

func (p *plot) leads(millis int, id string, term uint64) {
	p.event(millis, tenure.EventLeader, tenure.Leader{ID: id, Term: term, Incarnation: id}, nil)
}

func (p *plot) vacant(millis int) { p.event(millis, tenure.EventLeader, tenure.Leader{}, nil) }

// whole returns a plot with every kind of line.
func whole() *plot {
	p := newPlot()
	p.shows(0, "")
	p.add(p.Begin(tenure.Status{Known: true}, "billing", "me"))
	p.items[0].Event.Time, p.items[0].At = at(1), at(1)
	p.wrote(100, "a", 1, "")
	p.event(102, tenure.EventLeader, tenure.Leader{ID: "a", Term: 1, Address: "10.0.0.1:80"}, nil)
	p.wrote(700, "a", 1, "")
	p.shows(1000, `{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"2","request":{"term":1,"to":"b","by":"ops"}}`)
	p.wrote(1010, "a", 1, `,"released":true`)
	p.vacant(1011)
	p.wrote(1015, "b", 7, "")
	p.leads(1016, "b", 7)
	p.wrote(1600, "b", 7, "")
	p.vacant(3601)
	p.wrote(3610, "c", 9, "")
	p.leads(3612, "c", 9)
	p.shows(4000, "")
	p.vacant(4001)
	p.wrote(6000, "d\x1b[31m", 12, "")
	p.leads(6001, "d\x1b[31m", 12)
	p.event(6500, tenure.EventTrouble, tenure.Leader{}, errors.New("no\nanswer"))
	p.event(6600, tenure.EventTrouble, tenure.Leader{}, errors.New("no answer"))
	p.items = append(p.items, item{
		Item: story.Item{Fact: story.Fact{At: at(7000), What: connection, Text: connectionText(false, errors.New("EOF"))}}, cause: errors.New("EOF"),
	})
	p.vacant(8001)
	p.items = append(p.items, item{Item: story.Item{Fact: story.Fact{At: at(9000), What: connection, Text: connectionText(true, nil)}}, up: true})
	p.shows(9100, "other")
	p.event(9101, tenure.EventAlarm, tenure.Leader{}, &tenure.StoreError{Kind: driver.Foreign})
	p.vacant(9102)
	return p
}

// found returns a plot that begins with records that were found.
func found() *plot {
	p := newPlot()
	record := func(millis int, leader string, term uint64, written int) {
		p.wrote(millis, leader, term, fmt.Sprintf(`,"lastUpdated":%q`, at(written).Format(time.RFC3339Nano)))
	}
	record(0, "a", 4, -23*60_000)
	p.leads(1, "a", 4)
	p.shows(1900, `{"leaderID":"a","term":4,"leaseMillis":2000,"nonce":"1"}`)
	p.vacant(2001)
	p.wrote(9000, "b", 5, "")
	p.leads(9001, "b", 5)
	p.event(9100, tenure.EventTrouble, tenure.Leader{}, errors.New("no answer"))
	p.vacant(11001)
	record(20000, "b", 5, 19500)
	p.leads(20001, "b", 5)
	record(20200, "b", 5, 20200)
	p.event(20300, tenure.EventTrouble, tenure.Leader{}, errors.New("no answer"))
	p.vacant(22201)
	record(30000, "c", 6, 29500)
	p.leads(30001, "c", 6)
	record(30200, "c", 6, 30200)
	p.vacant(32200)
	p.wrote(32210, "d", 7, "")
	p.leads(32211, "d", 7)
	return p
}

func TestFoundRecords(t *testing.T) {
	var text, jsonl strings.Builder
	options := Options{Out: &text, Election: "billing", Place: place("nats://h/E"), Config: tenure.Config{ID: "me"}}
	l, o := newTextLines(options), &jsonLines{out: &jsonl, options: options}
	for _, i := range found().items {
		l.tell(i)
		o.tell(i)
	}
	must.Golden(t, "testdata/found.txt", text.String())
	must.Golden(t, "testdata/found.jsonl", jsonl.String())
}

func TestLines(t *testing.T) {
	var out strings.Builder
	l := newTextLines(Options{Out: &out, Election: "billing", Place: place("nats://***@host/E")})
	for _, i := range whole().items {
		l.tell(i)
	}
	must.Golden(t, "testdata/lines.txt", out.String())
}

// Trouble of a store, and an alarm, are printed after 0, 10, 30, 70, 150 and 310 s of trouble at
// each read.
func TestRepeatedTroubleIsPrintedLessOften(t *testing.T) {
	var out strings.Builder
	l := newTextLines(Options{Out: &out, Election: "billing", Place: place("nats://h/E")})
	p := newPlot()
	for s := range 600 {
		p.event(1000*s, tenure.EventTrouble, tenure.Leader{}, fmt.Errorf("read tcp 127.0.0.1:%d: no answer", 5000+s))
		p.event(1000*s, tenure.EventAlarm, tenure.Leader{}, &tenure.StoreError{Kind: driver.Malformed})
	}
	p.event(600_500, tenure.EventTrouble, tenure.Leader{}, errors.New("another"))
	for _, i := range p.items {
		l.tell(i)
	}
	var printed []string
	for line := range strings.Lines(out.String()) {
		if _, trouble, ok := strings.Cut(line, "  trouble"); ok {
			printed = append(printed, strings.TrimSpace(trouble))
		}
	}
	want := []string{
		": read tcp 127.0.0.1:5000: no answer", ", 10 times: read tcp 127.0.0.1:5010: no answer",
		", 20 times: read tcp 127.0.0.1:5030: no answer", ", 40 times: read tcp 127.0.0.1:5070: no answer",
		", 80 times: read tcp 127.0.0.1:5150: no answer", ", 160 times: read tcp 127.0.0.1:5310: no answer", ": another",
	}
	if !slices.Equal(printed, want) {
		t.Errorf("got\n%s", strings.Join(printed, "\n"))
	}
	if n := strings.Count(out.String(), "  alarm"); n != 6 || !strings.Contains(out.String(), "  alarm, 160 times: ") {
		t.Errorf("%d lines of alarms:\n%s", n, out.String())
	}
}

// If a renewal was seen late, a failover looks shorter than it can be.
func TestFailoverWithoutAKnownMinimum(t *testing.T) {
	var out strings.Builder
	i := item{Item: story.Item{Fact: story.Fact{What: story.Elected, Who: "b", Term: 2, Text: story.Silence, Took: 1900 * time.Millisecond, Least: -1}}}
	i.Before.ID = "a"
	(&textLines{out: &out}).tell(i)
	if got := strings.TrimSpace(out.String()); !strings.HasSuffix(got, "  b leads in term 2, 1.900 s after a last renewed") {
		t.Errorf("got %s", got)
	}
}

// A malformed record without a lease has no lease that could expire.
func TestRecordWithoutALeaseShowsNoLeader(t *testing.T) {
	p := newPlot()
	p.shows(0, `{"leaderID":"a","term":1,"leaseMillis":0,"nonce":"1"}`)
	p.vacant(1)
	if got := p.items[len(p.items)-1].Text; got != "the stored value is not a valid record" {
		t.Errorf("without a leader: %s", got)
	}
}

func TestObjects(t *testing.T) {
	var out strings.Builder
	o := &jsonLines{out: &out, options: Options{Election: "billing", Config: tenure.Config{ID: "me"}}}
	for _, i := range whole().items {
		o.tell(i)
	}
	must.Golden(t, "testdata/objects.jsonl", out.String())
}

type place string

func (p place) String() string { return string(p) }

// The live view gets these facts: the lease by its renewals, and each failover with its time.
func TestFacts(t *testing.T) {
	for _, c := range []struct {
		why  string
		plot func(p *plot)
		want []story.Fact
	}{
		{"a renewal is reported once, and a request is not a renewal", func(p *plot) {
			p.shows(0, `{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"n"}`)
			p.shows(5, `{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"n"}`)
			p.shows(9, `{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"n","request":{"term":1}}`)
			p.shows(9, `{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"n","request":{"term":1}}`)
		}, []story.Fact{
			{At: at(0), What: story.Renewed, Who: "a", Term: 1, Lease: 2 * time.Second},
			{At: at(9), What: story.Asked, Who: "a", Term: 1, Text: "to hand over"},
		}},
		{"a leader leads since its record was first seen", func(p *plot) {
			p.wrote(0, "a", 1, "")
			p.leads(5, "a", 1)
			p.event(9, tenure.EventLeader, tenure.Leader{ID: "a", Term: 1, Incarnation: "a", Address: "x"}, nil)
		}, []story.Fact{
			{At: at(0), What: story.Renewed, Who: "a", Term: 1, Lease: 2 * time.Second},
			{At: at(0), What: story.Elected, Who: "a", Term: 1, Lease: 2 * time.Second, Least: -1},
			{At: at(9), What: story.Elected, Who: "a", Term: 1, Lease: 2 * time.Second, Least: -1, Address: "x"},
		}},
		{"a release is reported once, and times count from it", func(p *plot) {
			p.wrote(0, "a", 1, "")
			p.leads(0, "a", 1)
			p.wrote(500, "a", 1, `,"released":true`)
			p.wrote(500, "a", 1, `,"released":true`)
			p.wrote(510, "b", 2, "")
			p.leads(511, "b", 2)
		}, []story.Fact{
			{At: at(0), What: story.Renewed, Who: "a", Term: 1, Lease: 2 * time.Second},
			{At: at(0), What: story.Elected, Who: "a", Term: 1, Lease: 2 * time.Second, Least: -1},
			{At: at(500), What: story.Released, Who: "a", Term: 1},
			{At: at(510), What: story.Renewed, Who: "b", Term: 2, Lease: 2 * time.Second},
			{At: at(510), What: story.Elected, Who: "b", Term: 2, Lease: 2 * time.Second, Took: 10 * time.Millisecond, Text: story.Graceful, Downtime: 10 * time.Millisecond},
		}},
		{"what was not seen is not measured", func(p *plot) {
			p.leads(0, "a", 1)
			p.leads(511, "b", 2)
		}, []story.Fact{
			{At: at(0), What: story.Elected, Who: "a", Term: 1, Least: -1, AtLeast: true},
			{At: at(511), What: story.Elected, Who: "b", Term: 2, Least: -1, AtLeast: true},
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			p := newPlot()
			p.shows(-100, "")
			c.plot(p)
			if len(p.items) != len(c.want) {
				t.Fatalf("reported %+v", p.items)
			}
			for i, got := range p.items {
				if got.Fact != c.want[i] {
					t.Errorf("got  %+v\nwant %+v", got.Fact, c.want[i])
				}
			}
		})
	}
}

func TestVacancyIsReportedOnceAtTheStart(t *testing.T) {
	p := newPlot()
	if got := p.Begin(tenure.Status{Leader: tenure.Leader{ID: "a"}}, "billing", "me"); got != nil {
		t.Errorf("with a leader: got %+v", got)
	}
	p.leads(0, "a", 1)
	if got := p.Begin(tenure.Status{}, "billing", "me"); got != nil {
		t.Errorf("after a leader: got %+v", got)
	}
	q := newPlot()
	if len(q.Begin(tenure.Status{}, "billing", "me")) != 1 || q.Begin(tenure.Status{}, "billing", "me") != nil {
		t.Error("the vacancy is not reported exactly once")
	}
}

// A slow reader blocks nothing.
func TestUnreadFactsAreDropped(t *testing.T) {
	w := New(Options{Place: place("x")})
	for range 2 * queued {
		w.Connection(false, errors.New("x"))
	}
	if len(w.news) != queued || w.story.Lease() != story.UsualLease {
		t.Errorf("%d wait, lease %v", len(w.news), w.story.Lease())
	}
	w.story.See(driver.Entry{Value: []byte(`{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"n"}`)}, true, noon)
	if records.Read(driver.Entry{}).Lease != 0 || w.story.Lease() != 2*time.Second {
		t.Errorf("lease %v", w.story.Lease())
	}
}
