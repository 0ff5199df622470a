package natskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// fakeSource is a source whose links the test breaks.
type fakeSource struct {
	mu        sync.Mutex
	fail      int      // this many attempts to open fail
	asked     []uint64 // the floors that links were requested from
	times     []time.Time
	news      func(key string, e driver.Entry)
	lose      func()
	links     int // links that were not stopped
	starts    uint64
	recreated bool   // links do not continue from the requested floor
	floor     uint64 // the floor of an absent key then
	again     chan nats.Status
}

var errFake = errors.New("fake")

func (s *fakeSource) open(_ context.Context, after uint64, deliver func(string, driver.Entry)) (*link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.times = append(s.asked, after), append(s.times, time.Now())
	if s.fail > 0 {
		s.fail--
		return nil, errFake
	}
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

func (s *fakeSource) failNext(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = n
}

func (s *fakeSource) state() (asked []uint64, links int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), s.links
}

// startHub returns a hub with one watch of key "a" and the floors that it saw.
func startHub(t *testing.T, s *fakeSource) (*hub, func() []uint64) {
	t.Helper()
	h := newHub(s, &abandon.Calls{})
	var mu sync.Mutex
	var seen []uint64
	_, err := h.watch(t.Context(), "a", func(e driver.Entry) {
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
		synctest.Wait()
		if got := seen(); !slices.Equal(got, []uint64{6, 3}) {
			t.Errorf("the watch saw floors %v; want 6, and then 3 of the bucket that was put back", got)
		}
		h.close()
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
				synctest.Wait()
				if asked, links := s.state(); !slices.Equal(asked, []uint64{0, c.want}) || links != 1 {
					t.Errorf("asked for news after %d, %d links; want after 0, then %d: %s", asked, links, c.want, c.why)
				}
				h.close()
				if _, links := s.state(); links != 0 {
					t.Errorf("%d links are left", links)
				}
			})
		})
	}
}

// TestFeedKeepsTrying: the feed tries again at growing intervals, and at once when the connection
// is back.
func TestFeedKeepsTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{again: make(chan nats.Status)}
		h, seen := startHub(t, s)
		s.failNext(12)
		s.lose()
		time.Sleep(time.Minute)
		synctest.Wait()
		var pauses []time.Duration
		for i := 2; i < len(s.times); i++ {
			pauses = append(pauses, s.times[i].Sub(s.times[i-1]))
		}
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		want := []time.Duration{ms(50), ms(100), ms(200), ms(400), ms(800), ms(1600), ms(3200), lastPause, lastPause}
		if len(pauses) < len(want) || !slices.Equal(pauses[:len(want)], want) {
			t.Errorf("pauses %v; want %v", pauses, want)
		}
		s.push("a", 3)
		if got := seen(); !slices.Equal(got, []uint64{3}) {
			t.Errorf("after the link is back: %d", got)
		}

		s.failNext(100)
		s.lose()
		time.Sleep(time.Minute)
		synctest.Wait()
		s.failNext(0)
		start := time.Now()
		s.again <- nats.CONNECTED
		synctest.Wait()
		if _, links := s.state(); links != 1 || !time.Now().Equal(start) {
			t.Errorf("%d links at once after the connection is back; want 1", links)
		}
		h.close()
	})
}

// TestFeedReportsThatNothingIsPushed: watches hear of it, also those that begin while nothing is
// pushed. When messages come again, they are made to read.
func TestFeedReportsThatNothingIsPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{again: make(chan nats.Status)}
		h, _ := startHub(t, s)
		watch := func() (heard func() string) {
			var mu sync.Mutex
			var all []string
			_, err := h.watch(t.Context(), "b", func(e driver.Entry) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case e.Lost != nil:
					all = []string{"lost"}
				case e.Unverified:
					all = append(all, "read")
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			return func() string {
				mu.Lock()
				defer mu.Unlock()
				return strings.Join(all, " ")
			}
		}
		early := watch()
		s.failNext(100)
		s.lose()
		time.Sleep(time.Minute)
		synctest.Wait()
		late := watch()
		if early() != "lost" || late() != "lost" {
			t.Errorf("while nothing is pushed: the watch before heard %q, and the one since %q", early(), late())
		}
		s.failNext(0)
		s.again <- nats.CONNECTED
		synctest.Wait()
		if early() != "lost read" || late() != "lost read" {
			t.Errorf("afterwards they heard %q and %q", early(), late())
		}
		h.close()
	})
}

// TestHubSetUp: the first watch sets the feed up, and gets the error if that fails. The next watch
// tries again.
func TestHubSetUp(t *testing.T) {
	s := &fakeSource{fail: 1}
	h := newHub(s, &abandon.Calls{})
	if _, err := h.watch(t.Context(), "a", func(driver.Entry) {}); !errors.Is(err, errFake) {
		t.Errorf("the first watch: %v; want the source's error", err)
	}
	for range 3 {
		stop, err := h.watch(t.Context(), "a", func(driver.Entry) {})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	if asked, links := s.state(); len(asked) != 2 || links != 1 {
		t.Errorf("%d attempts and %d links; want 2 and 1", len(asked), links)
	}
	h.close()
}

// TestHubWaitsForItsTurn: a set-up that hangs delays another one only until the other's context
// ends.
func TestHubWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(&fakeSource{}, &abandon.Calls{})
		h.turn <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.watch(ctx, "a", func(driver.Entry) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("watch: %v; want the context's error", err)
		}
		if !h.watches.Empty() {
			t.Error("a watch is left")
		}
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
