package story

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// The memory of earlier terms is bounded.
func TestEarlierTermsAreForgotten(t *testing.T) {
	var s Story
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for term := uint64(1); term < 100; term++ {
		value := fmt.Sprintf(`{"leaderID":"a","term":%d,"leaseMillis":2000,"nonce":"%d"}`, term, term)
		s.See(driver.Entry{Value: []byte(value)}, true, now)
		s.Hear(tenure.Event{Time: now, Kind: tenure.EventLeader, Term: term, Leader: tenure.Leader{ID: "a", Term: term}})
	}
	if len(s.signs) > 3 {
		t.Errorf("%d terms are known", len(s.signs))
	}
}

// Any client may have sent a push. So a push shows at most a renewal.
func TestForgedPushesShowOnlyRenewals(t *testing.T) {
	var s Story
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	const held = `{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"%d"}`
	s.See(driver.Entry{Value: fmt.Appendf(nil, held, 1)}, true, now)
	for value, facts := range map[string]int{
		fmt.Sprintf(held, 2): 1,
		`{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"3","released":true}`: 0,
		`{"leaderID":"b","term":2,"leaseMillis":2000,"nonce":"4"}`:                 0,
		"": 0, "junk": 0,
	} {
		if got := s.See(driver.Entry{Value: []byte(value), Unverified: true}, true, now); len(got) != facts {
			t.Errorf("%s yields %+v", value, got)
		}
	}
}

// Bytes that look like a leader's record may name any term.
func TestTermsWithoutAnElectionAreForgotten(t *testing.T) {
	var s Story
	for i := range 1000 {
		value := fmt.Appendf(nil, `{"leaderID":"a","term":%d,"leaseMillis":2000,"nonce":"%d"}`, 1<<60+i, i)
		s.See(driver.Entry{Value: value}, true, time.Now())
	}
	if len(s.signs) > maxSigns {
		t.Errorf("%d terms are known", len(s.signs))
	}
}

func TestReasonOfALeaderChange(t *testing.T) {
	a := func(seq int) write { return write{by: "a", term: 1, seq: seq} }
	b := write{by: "b", term: 2, seq: 1}
	for _, c := range []struct {
		what        string
		happens     func(p *plot)
		why         string
		took, least time.Duration // in seconds
	}{
		{"pushes stop for a lease", func(p *plot) { p.pushes(16, b) }, Silence, 16, 15},
		{"a push shows the next leader soon after a renewal: a release was skipped",
			func(p *plot) { p.pushes(5, b) }, "", 0, -1},
		{"the pushes of a while are missing",
			func(p *plot) { p.pushes(30, write{by: "b", term: 2, seq: 4}) }, "", 0, -1},
		{"the next look shows the next leader", func(p *plot) { p.reads(18, b) }, "", 0, -1},
		{"a look shows that the lease was not renewed",
			func(p *plot) { p.reads(15, a(5)); p.reads(18, b) }, Silence, 18, 15},
		{"the renewal was seen late", func(p *plot) { p.reads(13, a(5)); p.reads(14, b) }, Silence, 14, -1},
		{"a look shows the release", func(p *plot) {
			p.reads(9, write{by: "a", term: 1, seq: 6, more: `,"released":true`})
			p.reads(18, b)
		}, Graceful, 9, 0},
		{"the store did not answer for a while", func(p *plot) { p.fails(5); p.pushes(600, b) }, "", 0, -1},
		{"other bytes were there", func(p *plot) {
			p.sees(1, driver.Entry{Value: []byte("junk")}, true)
			p.pushes(30, b)
		}, "", 0, -1},
	} {
		t.Run(c.what, func(t *testing.T) {
			p := &plot{}
			p.pushes(-4, a(4))
			p.leads(-4, "a", 1)
			p.pushes(0, a(5))
			c.happens(p)
			p.leads(600, "b", 2)
			got := p.last()
			if got.What == Named {
				got.Text = ""
			}
			if c.least > 0 {
				c.least *= time.Second
			}
			if got.Text != c.why || got.Took != c.took*time.Second || max(got.Least, -1) != c.least {
				t.Errorf("%q, took %v of at least %v", got.Text, got.Took, got.Least)
			}
		})
	}
}

// A store that was deleted and recreated counts its terms from the beginning. Facts of earlier
// terms with the same numbers are not reused.
func TestRecreatedStore(t *testing.T) {
	p := &plot{}
	for second := range 2 {
		for n, id := range []string{"a", "b", "c"} {
			begins, term := float64(1000*second+12*n), uint64(n+1)
			p.pushes(begins, write{by: id, term: term, seq: 1})
			p.leads(begins+1, id, term)
			if got := p.last(); n > 0 && (got.Took != 2*time.Second || !got.At.Equal(at(begins))) {
				t.Errorf("%s at %v: after %v, at %v", id, begins, got.Took, got.At)
			}
			p.pushes(begins+10, write{by: id, term: term, seq: 2, more: `,"released":true`})
		}
		p.sees(float64(1000*second+500), driver.Entry{}, true)
	}
}

// The same leader leads the same term again: its new process began with an empty store.
func TestSameTermTwice(t *testing.T) {
	p := &plot{}
	p.pushes(0, write{by: "a", term: 1, seq: 1})
	p.leads(0, "a", 1)
	p.pushes(10, write{by: "a", term: 1, seq: 2, more: `,"released":true`})
	p.sees(20, driver.Entry{}, true)
	p.pushes(30, write{by: "a", term: 1, seq: 1})
	p.hears(31, tenure.Event{Kind: tenure.EventLeader, Leader: tenure.Leader{ID: "a", Incarnation: "another", Term: 1}})
	if got := p.last(); !got.At.Equal(at(30)) || got.Before.ID != "a" || got.Took != 20*time.Second {
		t.Errorf("it leads since %v, after %v: %+v", got.At, got.Took, got.Before)
	}
}
