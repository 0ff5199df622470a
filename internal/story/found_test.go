package story

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// plot is what an observer sees of an election with a lease of 15 s, in seconds from noon.
type plot struct {
	Story
	all []Item
}

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// write is a record of a leader, written at that second by its clock.
type write struct {
	by      string
	term    uint64
	seq     int
	written float64
	more    string
}

func (w write) bytes() []byte {
	return fmt.Appendf(nil, `{"leaderID":%q,"incarnation":%q,"term":%d,"seq":%d,"leaseMillis":15000,"nonce":"%s%d.%d","lastUpdated":%q%s}`,
		w.by, w.by, w.term, w.seq, w.by, w.term, w.seq, at(w.written).Format(time.RFC3339Nano), w.more)
}

// reads adds an answer to a read, and pushes a push.
func (p *plot) reads(second float64, w write)  { p.sees(second, driver.Entry{Value: w.bytes()}, false) }
func (p *plot) pushes(second float64, w write) { p.sees(second, driver.Entry{Value: w.bytes()}, true) }

// vacant adds a read of a record without a leader.
func (p *plot) vacant(second float64) {
	p.sees(second, driver.Entry{Value: []byte(`{"leaderID":"","term":0,"seq":1,"leaseMillis":15000,"nonce":"v"}`)}, false)
}

func (p *plot) absent(second float64) { p.sees(second, driver.Entry{}, false) }

func (p *plot) sees(second float64, e driver.Entry, pushed bool) {
	p.all = append(p.all, p.See(e, pushed, at(second))...)
}

func (p *plot) hears(second float64, e tenure.Event) {
	e.Time = at(second)
	p.all = append(p.all, p.Hear(e)...)
}

func (p *plot) leads(second float64, id string, term uint64) {
	p.hears(second, tenure.Event{Kind: tenure.EventLeader, Term: term, Leader: tenure.Leader{ID: id, Incarnation: id, Term: term}})
}

func (p *plot) nobody(second float64) { p.hears(second, tenure.Event{Kind: tenure.EventLeader}) }

func (p *plot) fails(second float64) {
	p.hears(second, tenure.Event{Kind: tenure.EventTrouble, Cause: errors.New("cut off")})
}

func (p *plot) alarms(second float64, cause error) {
	p.hears(second, tenure.Event{Kind: tenure.EventAlarm, Cause: cause})
}

// last returns the last item about who leads.
func (p *plot) last() Item {
	for i := len(p.all) - 1; i >= 0; i-- {
		if w := p.all[i].What; w == Elected || w == Named || w == Nobody {
			return p.all[i]
		}
	}
	return Item{}
}

// A record alone does not show whether its leader is still there.
func TestFoundRecordOnlyNamesALeader(t *testing.T) {
	const long = -23 * 60
	old := write{by: "w1", term: 7, seq: 9, written: long}
	renewed := write{by: "w1", term: 7, seq: 10, written: 4}
	for _, c := range []struct {
		why     string
		happens func(p *plot)
		want    Fact
	}{
		{"nothing else was seen", func(*plot) {}, Fact{
			At: at(0), What: Named, Text: "not confirmed: last written 23 min ago, by its writer's clock", Written: at(long), Least: -1,
		}},
		{"the same record again is no renewal", func(p *plot) { p.reads(1, old) }, Fact{
			At: at(0), What: Named, Text: "not confirmed: last written 23 min ago, by its writer's clock", Written: at(long), Least: -1,
		}},
		{"a renewal confirms it, and its term is older", func(p *plot) { p.reads(1, old); p.reads(4, renewed) }, Fact{
			At: at(0), What: Elected, AtLeast: true, Least: -1,
		}},
		{"the renewal is pushed", func(p *plot) { p.pushes(4, renewed) }, Fact{At: at(0), What: Elected, AtLeast: true, Least: -1}},
		{"it renewed at some time while nothing was seen", func(p *plot) { p.reads(600, renewed) }, Fact{
			At: at(600), What: Named, Text: "not confirmed: last written 9 min ago, by its writer's clock", Written: at(4), AtLeast: false, Least: -1,
		}},
		{"none comes within its lease", func(p *plot) { p.reads(14.9, old); p.nobody(15) }, Fact{
			At: at(15), What: Nobody, Written: at(long),
			Text: "the record names w1, last written 23 min ago by its clock, and no renewal was seen for its lease of 15s",
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			p := &plot{}
			p.reads(0, old)
			p.leads(0, "w1", 7)
			c.happens(p)
			if c.want.What != Nobody {
				c.want.Who, c.want.Term, c.want.Lease = "w1", 7, 15*time.Second
			}
			if got := p.last().Fact; got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// Anybody may send such a push, so it confirms nothing before a read shows the same.
func TestForgedPushDoesNotConfirmALeader(t *testing.T) {
	p := &plot{}
	forged := write{by: "w1", term: 7, seq: 10, written: 4}
	p.reads(0, write{by: "w1", term: 7, seq: 9})
	p.leads(0, "w1", 7)
	p.sees(4, driver.Entry{Value: forged.bytes(), Unverified: true}, true)
	if got := p.last(); got.What != Named {
		t.Errorf("after the push: %+v", got.Fact)
	}
	p.reads(5, forged)
	if got := p.last(); got.What != Elected {
		t.Errorf("after the read: %+v", got.Fact)
	}
}

// The first record of a term is a sign of life if it was seen as a change.
func TestSeenChangeElects(t *testing.T) {
	first := write{by: "w1", term: 7, seq: 1}
	for _, c := range []struct {
		why     string
		happens func(p *plot)
		want    What
	}{
		{"there was no record a moment ago", func(p *plot) { p.absent(-1); p.reads(0, first) }, Elected},
		{"another led a moment ago", func(p *plot) { p.reads(-1, write{by: "w0", term: 6}); p.reads(0, first) }, Elected},
		{"it is pushed after a silence", func(p *plot) { p.absent(-9); p.pushes(0, first) }, Elected},
		{"the store failed for a moment", func(p *plot) { p.absent(-9); p.fails(-5); p.reads(0, first) }, Elected},
		{"the store failed for long", func(p *plot) { p.absent(-60); p.fails(-50); p.pushes(0, first) }, Named},
		{"the store is read once in an hour", func(p *plot) { p.absent(-3600); p.reads(0, first) }, Named},
		{"nothing was seen before", func(p *plot) { p.pushes(0, first) }, Named},
	} {
		t.Run(c.why, func(t *testing.T) {
			p := &plot{}
			c.happens(p)
			p.leads(0.1, "w1", 7)
			if got := p.last(); got.What != c.want || got.AtLeast {
				t.Errorf("got %+v", got.Fact)
			}
		})
	}
}

// A renewal that comes before the election's event confirms the leader, too.
func TestRenewalBeforeTheEvent(t *testing.T) {
	p := &plot{}
	p.reads(0, write{by: "w1", term: 7, seq: 9})
	p.reads(1, write{by: "w1", term: 7, seq: 10})
	p.leads(0, "w1", 7)
	if got := p.last(); got.What != Elected || !got.AtLeast || !got.Confirmed.Equal(at(1)) {
		t.Errorf("got %+v", got)
	}
}

// A leader that was confirmed is only named if it is found again after an outage.
func TestLeaderAfterAnOutage(t *testing.T) {
	p := &plot{}
	p.absent(-1)
	p.reads(0, write{by: "w1", term: 7, seq: 1})
	p.leads(0, "w1", 7)
	p.fails(5)
	p.nobody(15)
	if got := p.last(); got.Text != "the store does not answer, so this is not certain" || !got.LeaseEnded.IsZero() {
		t.Errorf("in the outage: %+v", got)
	}
	p.reads(60, write{by: "w1", term: 7, seq: 12, written: 58})
	p.leads(60, "w1", 7)
	if got := p.last(); got.What != Named || got.Text != "not confirmed: last written 2.0 s ago, by its writer's clock" {
		t.Errorf("after the outage: %+v", got.Fact)
	}
	p.reads(63, write{by: "w1", term: 7, seq: 13, written: 63})
	if got := p.last(); got.What != Elected || got.AtLeast {
		t.Errorf("after a renewal: %+v", got.Fact)
	}
}

func TestTimesOfAFailover(t *testing.T) {
	held := func(seq int, written float64) write { return write{by: "w1", term: 7, seq: seq, written: written} }
	next := write{by: "w2", term: 8, seq: 1}
	second := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	for _, c := range []struct {
		why     string
		happens func(p *plot)
		want    Fact
		ended   time.Time
	}{
		{"the last renewal was seen", func(p *plot) {
			p.absent(-1)
			p.reads(0, held(1, 0))
			p.leads(0, "w1", 7)
			p.reads(5, held(2, 5))
			p.reads(19.9, held(2, 5))
			p.nobody(20)
			p.reads(20.5, next)
		}, Fact{Text: Silence, Took: second(15.5), Least: second(15), Downtime: second(0.5)}, at(20)},
		{"the last record was found, 3 s after it was written", func(p *plot) {
			p.reads(8, held(2, 5))
			p.leads(8, "w1", 7)
			p.reads(19.9, held(2, 5))
			p.reads(20.5, next)
		}, Fact{Text: Silence, Took: second(12.5), Least: -1, TookAtLeast: true, TookByClock: second(15.5)}, time.Time{}},
		{"the leader is dead for long", func(p *plot) {
			p.reads(0, held(2, -1380))
			p.leads(0, "w1", 7)
			p.reads(14, held(2, -1380))
			p.nobody(15)
			p.reads(20.5, next)
		}, Fact{Text: Silence, Took: second(20.5), Least: second(15), TookAtLeast: true, TookByClock: second(1400.5), Downtime: second(5.5)}, time.Time{}},
		{"the release was seen", func(p *plot) {
			p.absent(-1)
			p.reads(0, held(1, 0))
			p.leads(0, "w1", 7)
			p.pushes(2, write{by: "w1", term: 7, seq: 2, more: `,"released":true`})
			p.pushes(20.5, next)
		}, Fact{Text: Graceful, Took: second(18.5), Downtime: second(18.5)}, time.Time{}},
		{"the release was found after an outage", func(p *plot) {
			p.absent(-1)
			p.reads(0, held(1, 0))
			p.leads(0, "w1", 7)
			p.fails(1)
			p.reads(19.5, write{by: "w1", term: 7, seq: 2, more: `,"released":true`})
			p.fails(20)
			p.reads(20.5, next)
		}, Fact{Text: Graceful, Took: second(1), Downtime: second(1)}, time.Time{}},
		{"the next leader was found after an outage", func(p *plot) {
			p.absent(-101)
			p.reads(-100, held(1, 0))
			p.leads(-100, "w1", 7)
			p.reads(-86, held(1, 0))
			p.fails(-70)
			p.reads(20.5, next)
		}, Fact{What: Named, Least: -1}, time.Time{}},
	} {
		t.Run(c.why, func(t *testing.T) {
			p := &plot{}
			c.happens(p)
			p.leads(20.5, "w2", 8)
			got := p.last()
			if got.What == Named {
				got.Text, got.Written = "", time.Time{}
			}
			c.want.At, c.want.Who, c.want.Term, c.want.Lease = at(20.5), "w2", 8, second(15)
			if c.want.What == "" {
				c.want.What = Elected
			}
			if got.Fact != c.want || got.Before.ID != "w1" || !got.LeaseEnded.Equal(c.ended) {
				t.Errorf("got  %+v, lease ended %v\nwant %+v", got.Fact, got.LeaseEnded, c.want)
			}
		})
	}
}

// Each reason is what was seen of the leader that no longer leads, whatever the store shows by now.
func TestWhyNobodyLeads(t *testing.T) {
	const ranOut, released, deleted = "the lease of w1 ran out 15.000 s after its last renewal", "w1 has released the lease", "the record was deleted"
	const invalid, forged = "the stored value is not a valid record", `{"leaderID":"w9","term":9,"leaseMillis":0,"nonce":"n"}`
	release := write{by: "w1", term: 7, seq: 2, more: `,"released":true`}
	next := write{by: "w2", term: 8, seq: 1}
	value := func(text string) driver.Entry { return driver.Entry{Value: []byte(text)} }
	for _, c := range []struct {
		why     string
		happens func(p *plot)
		want    string
	}{
		{"the lease ran out", func(*plot) {}, ranOut},
		{"it ran out, and the event comes after the next claim", func(p *plot) { p.pushes(15.01, next) }, ranOut},
		{"it ran out, and the event comes after a late renewal", func(p *plot) { p.pushes(15.01, write{by: "w1", term: 7, seq: 3}) }, ranOut},
		{"released", func(p *plot) { p.pushes(14, release) }, released},
		{"released, and the event comes after the next claim", func(p *plot) { p.pushes(14, release); p.pushes(14.01, next) }, released},
		{"deleted", func(p *plot) { p.absent(14) }, deleted},
		{"deleted, and the event comes after the next claim", func(p *plot) { p.absent(14); p.pushes(14.01, next) }, deleted},
		{"vacant", func(p *plot) { p.vacant(14) }, "the record is vacant: candidates wait at least 15s before they claim"},
		{"foreign bytes", func(p *plot) { p.sees(14, value("junk"), true) }, invalid},
		{"a record without a lease", func(p *plot) { p.sees(14, value(forged), true) }, invalid},
		{"a record that the election refuses", func(p *plot) {
			p.pushes(14, write{by: "w9", term: 1 << 60})
			p.alarms(14, &tenure.StoreError{Kind: driver.Malformed})
		}, invalid},
		{"the store fails", func(p *plot) { p.fails(14) }, "the store does not answer, so this is not certain"},
		{"the store has failed, and the event comes late", func(p *plot) { p.reads(14, write{by: "w1", term: 7, seq: 1}); p.fails(13) }, ranOut},
	} {
		t.Run(c.why, func(t *testing.T) {
			p := &plot{}
			p.absent(-1)
			p.reads(0, write{by: "w1", term: 7, seq: 1})
			p.leads(0, "w1", 7)
			c.happens(p)
			p.nobody(15)
			if got := p.last(); got.What != Nobody || got.Text != c.want {
				t.Errorf("got %+v", got.Fact)
			}
		})
	}
}

// At each first start a candidate puts a vacant record, and waits for a lease.
func TestFirstStartIsExpected(t *testing.T) {
	p := &plot{}
	p.vacant(3)
	p.vacant(4)
	p.all = append(p.all, p.Begin(tenure.Status{Known: true}, "billing", "me")...)
	if got := p.last(); got.What != Nobody || !got.Expected.Equal(at(18)) {
		t.Errorf("got %+v", got.Fact)
	}
	p.absent(5)
	p.nobody(5)
	if got := p.last(); !got.Expected.IsZero() || got.Text != "there is no record" {
		t.Errorf("without a record: %+v", got.Fact)
	}
}

func TestTextOfARecordThatIsNotConfirmed(t *testing.T) {
	for written, want := range map[time.Time]string{
		{}:       "not confirmed: no renewal was seen",
		at(-3.2): "not confirmed: last written 3.2 s ago, by its writer's clock",
		at(0.5):  "not confirmed: last written 0.0 s ago, by its writer's clock",
		at(90):   "not confirmed: no renewal was seen, and its writer's clock is 90 s ahead",
	} {
		if got := NotConfirmed(written, noon); got != want {
			t.Errorf("written at %v: %s", written, got)
		}
	}
}

func TestTardy(t *testing.T) {
	for _, c := range []struct {
		why               string
		took, least, late time.Duration
		want              bool
	}{
		{"a hand-over", 6600 * time.Microsecond, 0, 0, false},
		{"a slow hand-over", 1100 * time.Millisecond, 0, 0, true},
		{"a hand-over where candidates read", 14 * time.Second, 0, 16 * time.Second, false},
		{"a crash", 15100 * time.Millisecond, 15 * time.Second, 0, false},
		{"a crash with a call that failed", 18 * time.Second, 15 * time.Second, 0, false},
		{"a slow one", 19 * time.Second, 15 * time.Second, 0, true},
		{"a crash with a short lease", 1900 * time.Millisecond, time.Second, 0, false},
		{"the shortest time is not known", time.Hour, -1, 0, false},
	} {
		if got := Tardy(c.took, c.least, c.late); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
}
