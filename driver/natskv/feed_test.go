package natskv

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/natskv/internal/connection"
	"github.com/tenure-go/tenure/driver/watches"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// fakeSource is a source whose links the test breaks.
type fakeSource struct {
	mu        sync.Mutex
	failure   error    // of attempts to open
	asked     []uint64 // the floors that links were requested from
	news      func(key string, e driver.Entry)
	lose      func()
	links     int // links that were not stopped
	starts    uint64
	recreated bool   // links do not continue from the requested floor
	floor     uint64 // the floor of an absent key then
	again     chan nats.Status
}

func (s *fakeSource) open(_ context.Context, after uint64, deliver func(string, driver.Entry)) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return nil, s.failure
	}
	s.asked = append(s.asked, after)
	s.links++
	lost := make(chan struct{})
	s.news, s.lose = deliver, sync.OnceFunc(func() { close(lost) })
	return &link{after: s.starts, recreated: s.recreated, floor: s.floor, lost: lost, stop: func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.links--
	}}, nil
}

func (s *fakeSource) reconnects() (<-chan nats.Status, func()) { return s.again, func() {} }

func (s *fakeSource) push(key string, sequence uint64) {
	s.mu.Lock()
	news := s.news
	s.mu.Unlock()
	news(key, life(0).entry(sequence, fmt.Append(nil, sequence)))
}

func (s *fakeSource) fail(failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
}

func (s *fakeSource) state() (asked []uint64, links int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), s.links
}

// startHub returns a hub with one watch of key "a" and the floors that it saw.
func startHub(t *testing.T, s *fakeSource) (*watches.Hub, func() []uint64) {
	t.Helper()
	h := newHub(s, &abandon.Calls{})
	var mu sync.Mutex
	var seen []uint64
	_, err := h.Watch(t.Context(), "a", func(e driver.Entry) {
		mu.Lock()
		defer mu.Unlock()
		if e.Floor > 0 {
			seen = append(seen, e.Floor)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return h, func() []uint64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// TestFeedReportsARestoredBucket: it is the same bucket, so no message shows that a key vanished.
func TestFeedReportsARestoredBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{starts: 5}
		h, seen := startHub(t, s)
		s.push("a", 6)
		s.recreated, s.floor = true, 3
		s.lose()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := seen(); !slices.Equal(got, []uint64{6, 3}) {
			t.Errorf("the watch saw floors %v; want 6, and then 3 of the bucket that was put back", got)
		}
		h.Close()
	})
}

func TestFeedResumes(t *testing.T) {
	for _, c := range []struct {
		name   string
		starts uint64
		pushed []uint64
		want   uint64
		why    string

		reconnects bool // the link is not lost by itself
	}{
		{"after the last message", 5, []uint64{6, 9}, 9, "what came later was missed", false},
		{"after the start", 5, nil, 5, "no message came, but some may have been missed", false},
		{"from now on", 0, nil, 0, "nothing is known", false},
		{"after the last message of a new stream", 90, []uint64{91, 2}, 2, "its sequences begin again", false},
		{"over another connection", 4, nil, 4, "a link dies silently with its connection", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeSource{starts: c.starts, again: make(chan nats.Status)}
				h, _ := startHub(t, s)
				for _, seq := range c.pushed {
					s.push("b", seq)
				}
				if c.reconnects {
					s.again <- nats.CONNECTED
				} else {
					s.lose()
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if asked, links := s.state(); !slices.Equal(asked, []uint64{0, c.want}) || links != 1 {
					t.Errorf("asked for news after %d, %d links; want after 0, then %d: %s", asked, links, c.want, c.why)
				}
				h.Close()
				if _, links := s.state(); links != 0 {
					t.Errorf("%d links are left", links)
				}
			})
		})
	}
}

// TestFeedWaitsForAConnection: it opens a link as soon as there is a connection.
func TestFeedWaitsForAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{again: make(chan nats.Status)}
		h, _ := startHub(t, s)
		s.fail(connection.ErrOffline)
		s.lose()
		time.Sleep(time.Minute)
		synctest.Wait()
		start := time.Now()
		s.fail(nil)
		s.again <- nats.CONNECTED
		synctest.Wait()
		if _, links := s.state(); links != 1 || !time.Now().Equal(start) {
			t.Errorf("%d links at once after the connection is back; want 1", links)
		}
		h.Close()
	})
}

// pushed is a message as a stream pushes it to a consumer.
func pushed(consumerSeq, streamSeq int) *nats.Msg {
	return &nats.Msg{
		Subject: "$KV.B." + testKey,
		Reply:   fmt.Sprintf("$JS.ACK.KV_B.c.1.%d.%d.1700000000000000000.0", streamSeq, consumerSeq),
		Data:    []byte("v"),
	}
}

func status(code, reply string, headers ...string) *nats.Msg {
	m := &nats.Msg{Reply: reply, Header: nats.Header{"Status": {code}}}
	for i := 0; i < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	return m
}

// TestConsumer gives a consumer the messages that a server may push.
func TestConsumer(t *testing.T) {
	var answers atomic.Int32
	nc, _ := play(t, func(*nats.Msg) []byte { answers.Add(1); return nil })
	for _, c := range []struct {
		name    string
		pushes  []*nats.Msg
		want    []uint64 // floors
		lost    bool
		answers int
		why     string
	}{
		{"messages", []*nats.Msg{pushed(1, 4), pushed(2, 9)}, []uint64{4, 9}, false, 0, "numbered without a gap"},
		{"gap", []*nats.Msg{pushed(1, 4), pushed(3, 9), pushed(4, 10)}, []uint64{4}, true, 0,
			"the next link begins after the first: after a later one it would miss the change in the gap, perhaps of another key"},
		{"gap at the start", []*nats.Msg{pushed(2, 9)}, []uint64{9}, true, 0, "one was dropped on the way"},
		{"heartbeat", []*nats.Msg{pushed(1, 4), status("100", "", "Nats-Last-Consumer", "1")}, []uint64{4}, false, 0,
			"nothing is missing"},
		{"heartbeat after a gap", []*nats.Msg{pushed(1, 4), status("100", "", "Nats-Last-Consumer", "2")}, []uint64{4}, true, 0,
			"the last one was dropped, and no later one shows it"},
		{"flow control", []*nats.Msg{status("100", "answers")}, nil, false, 1, "without the answer the server stops pushing"},
		{"stalled", []*nats.Msg{status("100", "", "Nats-Consumer-Stalled", "answers")}, nil, false, 1,
			"the first answer got lost"},
		{"deleted", []*nats.Msg{status("409", "")}, nil, true, 0, "nothing more will come"},
		{"stranger", []*nats.Msg{{Data: []byte("v")}}, nil, false, 0, "anybody may publish to an inbox"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []uint64
			con := &consumer{stored: "$KV.B.", lost: make(chan struct{}), quiet: time.AfterFunc(time.Hour, func() {})}
			con.deliver = func(key string, e driver.Entry) {
				if key != testKey {
					t.Errorf("key %q", key)
				}
				got = append(got, e.Floor)
			}
			answers.Store(0)
			sub, err := nc.SubscribeSync("unused")
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range c.pushes {
				m.Sub = sub
				con.receive(m)
			}
			lost := false
			select {
			case <-con.lost:
				lost = true
			default:
			}
			if !slices.Equal(got, c.want) || lost != c.lost {
				t.Errorf("got %d, lost %v; want %d, %v: %s", got, lost, c.want, c.lost, c.why)
			}
			wait.Until(t, c.why, func() bool { return int(answers.Load()) == c.answers })
			_ = sub.Unsubscribe()
		})
	}
}
