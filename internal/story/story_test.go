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

// film is the sequence that an observer sees, in seconds from its beginning.
type film struct {
	Story
	begin  time.Time
	leader Item // the last Elected
}

// shows adds a record with a lease of 12 s.
func (f *film) shows(second int, pushed bool, leader string, term, seq int, more string) {
	value := ""
	if leader != "" {
		value = fmt.Sprintf(`{"leaderID":%q,"incarnation":%q,"term":%d,"seq":%d,"leaseMillis":12000,"nonce":"%s%d"%s}`,
			leader, leader, term, seq, leader, seq, more)
	}
	f.See(driver.Entry{Value: []byte(value)}, pushed, f.at(second))
}

func (f *film) at(second int) time.Time { return f.begin.Add(time.Duration(second) * time.Second) }

func (f *film) leads(second int, id string, term uint64) {
	f.leader = f.Hear(tenure.Event{
		Time: f.at(second), Kind: tenure.EventLeader, Leader: tenure.Leader{ID: id, Incarnation: id, Term: term},
	})[0]
}

func (f *film) fails(second int) {
	f.Hear(tenure.Event{Time: f.at(second), Kind: tenure.EventTrouble, Cause: fmt.Errorf("cut off")})
}

func TestReasonOfALeaderChange(t *testing.T) {
	const unknown = -time.Second
	for _, c := range []struct {
		what        string
		happens     func(f *film)
		why         string
		took, least int // in seconds
	}{
		{"pushes stop for a lease", func(f *film) {
			f.shows(13, true, "b", 2, 1, "")
		}, Silence, 13, 12},
		{"a push shows the next leader soon after a renewal: a release was skipped", func(f *film) {
			f.shows(5, true, "b", 2, 1, "")
		}, "", 0, -1},
		{"the pushes of a while are missing", func(f *film) {
			f.shows(30, true, "b", 2, 4, "")
		}, "", 0, -1},
		{"the next look shows the next leader", func(f *film) {
			f.shows(15, false, "b", 2, 1, "")
		}, "", 0, -1},
		{"a look shows that the lease was not renewed", func(f *film) {
			f.shows(12, false, "a", 1, 5, "")
			f.shows(15, false, "b", 2, 1, "")
		}, Silence, 15, 12},
		{"the renewal was seen late", func(f *film) {
			f.shows(10, false, "a", 1, 5, "")
			f.shows(11, false, "b", 2, 1, "")
		}, Silence, 11, -1},
		{"a look shows the release", func(f *film) {
			f.shows(9, false, "a", 1, 6, `,"released":true`)
			f.shows(15, false, "b", 2, 1, "")
		}, Graceful, 6, 0},
		{"the store did not answer for a while", func(f *film) {
			f.fails(5)
			f.shows(600, true, "b", 2, 1, "")
		}, "", 0, -1},
		{"other bytes were there", func(f *film) {
			f.See(driver.Entry{Value: []byte("junk")}, true, f.at(1))
			f.shows(30, true, "b", 2, 1, "")
		}, "", 0, -1},
	} {
		t.Run(c.what, func(t *testing.T) {
			f := &film{begin: time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)}
			f.shows(-4, true, "a", 1, 4, "")
			f.leads(-4, "a", 1)
			f.shows(0, true, "a", 1, 5, "")
			c.happens(f)
			f.leads(600, "b", 2)
			got := f.leader
			if got.What == Named {
				got.Text = ""
			}
			least := got.Least
			if least < 0 {
				least = unknown
			}
			if got.Text != c.why || got.Took != time.Duration(c.took)*time.Second || least != time.Duration(c.least)*time.Second {
				t.Errorf("%q, took %v of at least %v", got.Text, got.Took, got.Least)
			}
		})
	}
}

// A store that was deleted and recreated counts its terms from the beginning. Facts of earlier
// terms with the same numbers are not reused.
func TestRecreatedStore(t *testing.T) {
	f := &film{begin: time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)}
	for second := range 2 {
		for n, id := range []string{"a", "b", "c"} {
			at := 1000*second + 12*n
			f.shows(at, true, id, n+1, 1, "")
			f.leads(at+1, id, uint64(n+1))
			if n > 0 && (f.leader.Took != 2*time.Second || !f.leader.At.Equal(f.at(at))) {
				t.Errorf("%s at %v: after %v, at %v", id, f.at(at), f.leader.Took, f.leader.At)
			}
			f.shows(at+10, true, id, n+1, 2, `,"released":true`)
		}
		f.shows(1000*second+500, true, "", 0, 0, "")
	}
}

// The same leader leads the same term again: its new process began with an empty store.
func TestSameTermTwice(t *testing.T) {
	f := &film{begin: time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)}
	f.shows(0, true, "a", 1, 1, "")
	f.leads(0, "a", 1)
	f.shows(10, true, "a", 1, 2, `,"released":true`)
	f.shows(20, true, "", 0, 0, "")
	f.shows(30, true, "a", 1, 1, "")
	f.leader = f.Hear(tenure.Event{
		Time: f.at(31), Kind: tenure.EventLeader, Leader: tenure.Leader{ID: "a", Incarnation: "another", Term: 1},
	})[0]
	if !f.leader.At.Equal(f.at(30)) || f.leader.Before.ID != "a" || f.leader.Took != 20*time.Second {
		t.Errorf("it leads since %v, after %v: %+v", f.leader.At, f.leader.Took, f.leader.Before)
	}
}
