package demo

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/natsbucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/s3bucket"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/witness"
)

func init() { time.Local = time.UTC } // the lines show local time

// verboseOptions are the options of a demo that prints one line of each kind.
var verboseOptions = Options{
	Place:    stores.Place{At: &natsbucket.Place{Servers: []string{"nats://host:4222"}, User: "user", Password: "s3cret", Bucket: "ELECTIONS"}},
	Election: "demo", Candidates: 10, Lease: 2 * time.Second, Renew: 2 * time.Second / 3, CrashEvery: 5 * time.Second,
	Verbose: true,
}

// library returns an event as a candidate reports it.
func library(t *testing.T, ms int, e tenure.Event) entry {
	t.Helper()
	e.Time, e.Election = wall(ms), "demo"
	text, err := json.Marshal(e)
	must.OK(t, err)
	got, err := report{Event: text}.event()
	must.OK(t, err)
	return entry{at: at(ms), event: got}
}

// printAll prints a whole demo.
func printAll(t *testing.T, p printer) {
	t.Helper()
	p.begin(wall(0), verboseOptions)
	for _, d := range []deed{
		{do: doAdvise, text: "warning: replicas: one server (run three)"},
		{do: doUnseen, text: "permission denied"},
		{do: doStart, id: "c1", pid: 4711},
	} {
		d.time = wall(1)
		p.show(entry{deed: &d}, nil)
	}
	cause := errors.New(`tenure: election "demo": write: not connected`)
	p.show(library(t, 10, tenure.Event{Kind: tenure.EventCandidate, ID: "c1"}), nil)
	p.show(library(t, 11, tenure.Event{Kind: tenure.EventElected, ID: "c1", Term: 1}), nil)
	p.show(library(t, 12, tenure.Event{Kind: tenure.EventLeader, ID: "c2", Term: 1, Leader: tenure.Leader{ID: "c1"}}), nil)
	p.show(library(t, 13, tenure.Event{Kind: tenure.EventTrouble, ID: "c10", Term: 1, Cause: cause}), nil)
	for _, d := range []do{doKill, doPause, doResume, doStop} {
		p.show(entry{deed: &deed{time: wall(500), do: d, id: "c1", term: 1}}, nil)
	}
	p.show(entry{deed: &deed{time: wall(501), do: doDied, id: "c1", pid: 4711, text: "signal: killed"}}, nil)
	p.show(entry{deed: &deed{time: wall(502), do: doOutput, id: "c1", text: "panic: oh"}}, nil)
	p.show(entry{deed: &deed{time: wall(503), do: doStore, text: "the connection is lost: EOF"}}, nil)
	printEnd(t, p)
}

// one is the statistics of one failover, in milliseconds.
func one(ms time.Duration) stat { return stat{ms * time.Millisecond, ms * time.Millisecond, true} }

func printEnd(t *testing.T, p printer) {
	t.Helper()
	p.show(library(t, 1600, tenure.Event{Kind: tenure.EventLeader, ID: "c2"}), nil)
	p.show(library(t, 1700, tenure.Event{Kind: tenure.EventElected, ID: "c2", Term: 7}),
		&failover{kind: kindCrash, from: "c1", to: "c2", took: 1200 * time.Millisecond, least: 1100 * time.Millisecond, known: true})
	p.show(library(t, 1800, tenure.Event{Kind: tenure.EventLeaving, ID: "c2", Term: 7, Cause: tenure.ErrHandOver}), nil)
	p.show(library(t, 1801, tenure.Event{Kind: tenure.EventReleased, ID: "c2", Term: 7}), nil)
	p.show(library(t, 1805, tenure.Event{Kind: tenure.EventElected, ID: "c1", Term: 9}),
		&failover{kind: kindOther, from: "c2", to: "c1", took: 5 * time.Millisecond})
	p.show(library(t, 1900, tenure.Event{Kind: tenure.EventLost, ID: "c1", Term: 9, Cause: tenure.ErrExpired, Missed: 3}), nil)
	p.show(library(t, 1901, tenure.Event{Kind: tenure.EventAlarm, ID: "c1", Cause: &tenure.StoreError{Kind: driver.Foreign}}), nil)
	p.overlap(wall(1902), witness.Overlap{
		Older: witness.Span{Token: 7, Who: "c2 (process 4712)", Last: int64(at(1950))},
		Newer: witness.Span{Token: 9, Who: "c1 (process 4711)", First: int64(at(1945))},
	})
	p.end(wall(2000), summary{
		lasted: 2 * time.Second, elections: 3, first: 1, last: 9, failovers: 2, acts: 75, overlaps: 1,
		rows: []row{
			{kind: kindCrash, n: 1, took: one(1200), least: one(1100)}, {kind: kindPause}, {kind: kindOther, n: 1, took: one(5)},
		},
	})
}

func TestHumanLines(t *testing.T) {
	for name, colour := range map[string]bool{"human.txt": false, "human-colour.txt": true} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := verboseOptions
			o.Out, o.Colour = &out, colour
			printAll(t, o.printer(func() {}))
			must.Golden(t, "testdata/"+name, out.String())
			if got := strings.Contains(out.String(), "\x1b["); got != colour {
				t.Errorf("colored: %v", got)
			}
			if strings.Contains(out.String(), "s3cret") {
				t.Error("shows the password")
			}
		})
	}
}

// polled returns the options of a demo on object storage.
func polled(p *peers.Settings) Options {
	o := verboseOptions
	o.Place, o.Peers = stores.Place{At: &s3bucket.Place{Bucket: "bucket", Endpoint: "http://host:9000", Region: "r"}}, p
	return o
}

// printPolled prints the lines that differ for a polled store.
func printPolled(t *testing.T, p printer, o Options) {
	t.Helper()
	p.begin(wall(0), o)
	p.show(entry{deed: &deed{time: wall(1), do: doPeer, id: "c1", text: `peer: election "demo": leader at "h:1": connection refused`}}, nil)
	p.show(library(t, 2, tenure.Event{Kind: tenure.EventTrouble, ID: "c1", Cause: errors.New(`tenure: election "demo": read: s3object: read "demo" ` +
		`in bucket b: operation error S3: GetObject, https response error StatusCode: 0, RequestID: , HostID: , request send failed, Get "http://h"`)}), nil)
	p.show(library(t, 1700, tenure.Event{Kind: tenure.EventElected, ID: "c2", Term: 1795270861001}), &failover{
		kind: kindCrash, from: "c1", to: "c2", took: 1200 * time.Millisecond, least: 1100 * time.Millisecond, known: true, most: 3100 * time.Millisecond,
	})
	p.end(wall(2000), summary{lasted: 2 * time.Second, elections: 2, first: 1, last: 9, failovers: 2, acts: 75, rows: []row{
		{kind: kindCrash, n: 1, took: one(1200), least: one(1100), most: one(3100)}, {kind: kindPause}, {kind: kindOther, n: 1, took: one(5)},
	}})
}

func TestLinesForAPolledStore(t *testing.T) {
	for _, json := range []bool{false, true} {
		var out bytes.Buffer
		o := polled(nil)
		o.Out, o.JSON = &out, json
		printPolled(t, o.printer(func() {}), o)
		must.Golden(t, "testdata/"+map[bool]string{false: "polled.txt", true: "polled.jsonl"}[json], out.String())
	}
	var out bytes.Buffer
	o := polled(&peers.Settings{Cert: "file"})
	o.Out = &out
	o.printer(func() {}).begin(wall(0), o)
	if !strings.Contains(out.String(), "reports to its followers directly, over https.") || strings.Contains(out.String(), "longer") {
		t.Errorf("got:\n%s", out.String())
	}
}

// All followers see the same leader, so only one line reports it. One line also stands for repeated
// trouble of a store.
func TestHumanOutputOmitsRepetitions(t *testing.T) {
	var out bytes.Buffer
	o := verboseOptions
	o.Out, o.Verbose = &out, false
	h := newHuman(o)
	trouble := tenure.Event{Kind: tenure.EventTrouble, ID: "c1", Cause: errors.New("down")}
	for _, e := range []entry{
		library(t, 0, tenure.Event{Kind: tenure.EventLeader, ID: "c1"}),
		library(t, 1, trouble), library(t, 4000, trouble), library(t, 8000, trouble), // one outage
		library(t, 8001, tenure.Event{Kind: tenure.EventTrouble, ID: "c2", Cause: errors.New("down")}),
		library(t, 14000, trouble), // another outage
		{deed: &deed{do: doPeer, id: "c2", text: "connection refused", expected: true}},
	} {
		h.show(e, nil)
	}
	want := "12:00:00.001  c1   trouble                         down\n12:00:08.001  c2   trouble                         down\n12:00:14.000  c1   trouble                         down\n"
	if out.String() != want {
		t.Errorf("got:\n%s", out.String())
	}
}

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	o := verboseOptions
	o.Out, o.JSON = &out, true
	printAll(t, o.printer(func() {}))
	must.Golden(t, "testdata/lines.jsonl", out.String())
	for line := range strings.Lines(out.String()) {
		checkHead(t, line)
	}
}

// checkHead checks that the first fields are the same in every line.
func checkHead(t *testing.T, line string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	_, _ = d.Token()
	for _, want := range []string{"time", "event", "election", "id", "term"} {
		key, err := d.Token()
		if err != nil || key != want {
			t.Fatalf("got field %v (%v), want %s, in %s", key, err, want, line)
		}
		if value, err := d.Token(); want == "time" {
			if _, err := time.Parse(time.RFC3339Nano, value.(string)); err != nil {
				t.Error(err)
			}
		} else if err != nil {
			t.Error(err)
		}
	}
}

func TestBrief(t *testing.T) {
	for cause, want := range map[string]string{
		"tenure: shutting down": "shutting down",
		// On NATS no election name has a colon.
		`tenure: election "a: b": read: timeout`:        `b": read: timeout`,
		`tenure: election "demo": write: not connected`: "write: not connected",
		"permission denied":                             "permission denied",
		"tenure: election is not what it was":           "election is not what it was",
		"":                                              "",
	} {
		if got := brief(cause); got != want {
			t.Errorf("%q is printed as %q, want %q", cause, got, want)
		}
	}
}

// noon is one time on both clocks.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(millis int) stamp.Time { return stamp.Time(time.Duration(millis) * time.Millisecond) }

func wall(millis int) time.Time { return noon.Add(time.Duration(millis) * time.Millisecond) }

// until is a writer that calls found once the text was written.
type until struct {
	text  string
	found func()

	mu  sync.Mutex
	all bytes.Buffer
}

func (u *until) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all.Write(p)
	if strings.Contains(u.all.String(), u.text) {
		u.found()
	}
	return len(p), nil
}
