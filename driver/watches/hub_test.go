package watches_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

var errFake = errors.New("fake")

// fakeFeed is a feed that the test breaks.
type fakeFeed struct {
	mu       sync.Mutex
	failure  error       // of attempts to open it
	silent   bool        // attempts hang
	slow     bool        // attempts take 3 s, whatever their context
	missed   bool        // each feed but the first misses changes
	attempts []time.Time // when they began
	ended    int
	lose     func()
	begun    int // lifetimes
}

func (f *fakeFeed) hub() *watches.Hub {
	return watches.NewHub(func(*watches.Hub) watches.Follow {
		f.set(func() { f.begun++ })
		return f.follow
	})
}

func (f *fakeFeed) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeFeed) follow(ctx context.Context, opened func(missed bool)) error {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.attempts = append(f.attempts, time.Now())
	failure, silent, slow, missed := f.failure, f.silent, f.slow, f.missed
	f.lose = cancel
	f.mu.Unlock()
	defer f.set(func() { f.ended++ })
	if slow {
		time.Sleep(3 * time.Second)
	}
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	if failure != nil {
		return failure
	}
	opened(missed)
	<-own.Done()
	return cmp.Or(ctx.Err(), errFake)
}

// running returns how many lifetimes have begun, and how many attempts or feeds are under way.
func (f *fakeFeed) running() (begun, now int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun, len(f.attempts) - f.ended
}

// heard records what a watch hears.
type heard struct {
	mu   sync.Mutex
	said []string
}

func (h *heard) see(e driver.Entry) {
	said := string(e.Value)
	switch {
	case e.Lost != nil:
		said = "lost"
	case e.Unverified:
		said = "read"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.said); said != "lost" || n == 0 || h.said[n-1] != "lost" { // it may be repeated
		h.said = append(h.said, said)
	}
}

func (h *heard) expect(t *testing.T, want, why string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if got := strings.Join(h.said, " "); got != want {
		t.Errorf("the watch heard %q; want %q: %s", got, want, why)
	}
}

func begin(t *testing.T, hub *watches.Hub, key string) (h *heard, stop func()) {
	t.Helper()
	h = &heard{}
	stop, err := hub.Watch(t.Context(), key, h.see)
	if err != nil {
		t.Fatal(err)
	}
	return h, stop
}

// inBubble runs a test in virtual time. At its end no feed may be left.
func inBubble(t *testing.T, test func(t *testing.T, f *fakeFeed, hub *watches.Hub)) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFeed{}
		hub := f.hub()
		test(t, f, hub)
		hub.Close()
		if _, now := f.running(); now != 0 {
			t.Errorf("%d feeds are left after Close", now)
		}
	})
}

func TestHubSharesOneFeed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
		a, stopA := begin(t, hub, "a")
		b, stopB := begin(t, hub, "b")
		hub.Deliver("a", driver.Entry{Value: []byte("1")})
		hub.DeliverAll(driver.Entry{Value: []byte("2")})
		keys := hub.Keys()
		slices.Sort(keys)
		if !slices.Equal(keys, []string{"a", "b"}) || !hub.Watched("a") || hub.Watched("c") {
			t.Errorf("watched: %q", keys)
		}
		stopA()
		stopA()
		hub.DeliverAll(driver.Entry{Value: []byte("3")})
		a.expect(t, "1 2", "its watch is stopped")
		b.expect(t, "2 3", "it watches another key")
		if begun, now := f.running(); begun != 1 || now != 1 {
			t.Errorf("%d lifetimes, %d feeds; want one", begun, now)
		}
		stopB()
		synctest.Wait()
		if _, now := f.running(); now != 0 {
			t.Errorf("%d feeds without a watch", now)
		}
		begin(t, hub, "a")
		if begun, now := f.running(); begun != 2 || now != 1 {
			t.Errorf("%d lifetimes, %d feeds; a first watch begins another one", begun, now)
		}
	})
}

// TestHubReopens: a feed that is replaced at once is not reported, unless it misses changes.
func TestHubReopens(t *testing.T) {
	for missed, want := range map[bool]string{false: "", true: "read"} {
		inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
			f.missed = missed
			a, _ := begin(t, hub, "a")
			time.Sleep(time.Minute)
			lost := time.Now()
			f.lose()
			synctest.Wait()
			if n := len(f.attempts); n != 2 || !f.attempts[1].Equal(lost) {
				t.Errorf("%d attempts, the last at %v; want a second one at once", n, f.attempts[n-1])
			}
			a.expect(t, want, "the feed was replaced")
		})
	}
}

// TestHubKeepsTrying: while attempts fail, watches learn of it, and the attempts become rare. After
// an outage, the next one begins with short pauses again.
func TestHubKeepsTrying(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
		early, _ := begin(t, hub, "a")
		time.Sleep(time.Minute)
		f.set(func() { f.failure = errFake })
		lost := time.Now()
		f.lose()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		late, _ := begin(t, hub, "b")
		early.expect(t, "lost", "nothing is pushed")
		late.expect(t, "lost", "nothing is pushed since before it began")
		if n := len(f.attempts); n < 10*60/8 || n > 10*60/2 || f.attempts[3].Sub(lost) > time.Second {
			t.Errorf("%d attempts in 10 min, the third at %v; want one every 5 s, the first ones soon", n, f.attempts[3])
		}
		f.set(func() { f.failure = nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		early.expect(t, "lost read", "changes were missed")
		late.expect(t, "lost read", "changes were missed")

		time.Sleep(time.Minute)
		f.set(func() { f.failure = errFake })
		lost, before := time.Now(), len(f.attempts)
		f.lose()
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(f.attempts) - before; n < 3 {
			t.Errorf("%d attempts in the first second after %v", n, lost)
		}
	})
}

// TestHubOfBriefFeeds: a proxy may end each feed soon after it was opened.
func TestHubOfBriefFeeds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
		a, _ := begin(t, hub, "a")
		for range 60 {
			f.set(func() { f.lose() })
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := len(f.attempts); n > 30 {
			t.Errorf("%d feeds in 60 s", n)
		}
		if len(a.said) == 0 || a.said[0] != "lost" {
			t.Errorf("the watch heard %q; want that no changes are pushed", a.said)
		}
	})
}

// TestHubOfSilentServer: an attempt that takes long is given up, the first one after a loss soon.
func TestHubOfSilentServer(t *testing.T) {
	for what, worsen := range map[string]func(*fakeFeed){
		"silent":   func(f *fakeFeed) { f.silent = true },
		"too slow": func(f *fakeFeed) { f.slow = true },
	} {
		inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
			var lost error
			_, err := hub.Watch(t.Context(), "a", func(e driver.Entry) { lost = e.Lost })
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			f.set(func() { worsen(f) })
			f.lose()
			time.Sleep(3100 * time.Millisecond)
			synctest.Wait()
			if !errors.Is(lost, driver.ErrNoAnswer) || errors.Is(lost, context.Canceled) {
				t.Errorf("3 s after the loss, and the server is %s: the watch has heard %v", what, lost)
			}
		})
	}
}

// TestHubFirstAttempt: a watch that waits for it gets its error and no push. The next watch tries
// again.
func TestHubFirstAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
		f.failure = errFake
		a := &heard{}
		if _, err := hub.Watch(t.Context(), "a", a.see); !errors.Is(err, errFake) {
			t.Errorf("the first watch: %v; want the error of the feed", err)
		}
		a.expect(t, "", "it has the error")
		f.set(func() { f.failure = nil })
		b, _ := begin(t, hub, "b")
		b.expect(t, "", "no change was missed")
	})
}

// TestHubBeginsLate: at its deadline a watch begins without pushes. A canceled one does not begin.
func TestHubBeginsLate(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
		f.silent = true
		ended, cancel := context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		if _, err := hub.Watch(ended, "a", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a watch after its deadline: %v", err)
		}
		if begun, _ := f.running(); begun != 0 {
			t.Error("a watch after its deadline begins a feed")
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := &heard{}
		if _, err := hub.Watch(short, "a", a.see); err != nil {
			t.Fatal(err)
		}
		a.expect(t, "lost", "nothing is pushed")
		canceled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		for range 2 { // the context ends during the first call
			if _, err := hub.Watch(canceled, "b", nil); !errors.Is(err, context.Canceled) || hub.Watched("b") {
				t.Errorf("a canceled watch: %v, it is left: %v", err, hub.Watched("b"))
			}
		}
		f.set(func() { f.silent = false })
		time.Sleep(time.Minute)
		synctest.Wait()
		a.expect(t, "lost read", "changes are pushed")
	})
}

// TestHubCloses also while a watch waits.
func TestHubCloses(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
		f.silent = true
		failed := make(chan error)
		go func() {
			_, err := hub.Watch(t.Context(), "a", nil)
			failed <- err
		}()
		synctest.Wait()
		hub.Close()
		if err := <-failed; !errors.Is(err, watches.ErrClosed) {
			t.Errorf("the watch that waited: %v", err)
		}
		if _, err := hub.Watch(t.Context(), "a", nil); !errors.Is(err, watches.ErrClosed) {
			t.Errorf("a later watch: %v", err)
		}
		if begun, now := f.running(); begun != 1 || now != 0 {
			t.Errorf("%d lifetimes, %d feeds; want one that has ended", begun, now)
		}
	})
}

// TestHubOfLateFeeds: a feed of earlier watches says nothing to later ones.
func TestHubOfLateFeeds(t *testing.T) {
	for _, failure := range []error{nil, errFake} {
		inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
			f.slow, f.failure = true, failure
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			stop, err := hub.Watch(short, "a", func(driver.Entry) {})
			if err != nil {
				t.Fatal(err)
			}
			stop()
			f.set(func() { f.slow, f.failure = false, nil })
			b, _ := begin(t, hub, "b")
			time.Sleep(time.Minute)
			b.expect(t, "", "its own feed is open all the time")
		})
	}
}

// TestHubOrder: if the feed opens while a watch gets an entry with Lost, the watch also learns
// that it is.
func TestHubOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, f *fakeFeed, hub *watches.Hub) {
		f.slow = true
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := &heard{}
		_, err := hub.Watch(short, "a", func(e driver.Entry) {
			if e.Lost != nil {
				time.Sleep(time.Minute)
			}
			a.see(e)
		})
		if err != nil {
			t.Fatal(err)
		}
		a.expect(t, "read lost read", "the last word is the truth")
	})
}
