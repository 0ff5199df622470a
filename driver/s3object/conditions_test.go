package s3object

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

// careless are servers that ignore conditions, with the header that the error must name.
var careless = []struct {
	name   string
	change func(*stub)
	opts   []Option
	header string
}{
	{"ignores If-None-Match", ignoring("If-None-Match"), nil, "If-None-Match"},
	{"ignores If-Match", ignoring("If-Match"), nil, "If-Match"},
	{"ignores both", answering(func(s *stub, _ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
		return false
	}), nil, "If-None-Match"},
	{"ignores ETags without quotes", bareIgnoring, []Option{WithUnquotedETags()}, "If-Match"},
}

// TestCarelessServerIsNeverWrittenTo: the cell keeps what it holds, or stays absent. Each write
// after the first is refused as well.
func TestCarelessServerIsNeverWrittenTo(t *testing.T) {
	for _, c := range careless {
		t.Run(c.name, func(t *testing.T) {
			s := startStub(t, c.change)
			held := s.set("held", "precious")
			store := s.openFirst(t, c.opts...)
			for range 3 {
				_, created := store.CompareAndSwap(bounded(t, patience), "absent", "", []byte("mine"))
				_, swapped := store.CompareAndSwap(bounded(t, patience), "held", held, []byte("mine"))
				checked := store.CheckRights(bounded(t, patience), "held")
				for call, err := range map[string]error{"create": created, "swap": swapped, "check": checked} {
					if !errors.Is(err, driver.ErrUnfit) || outcomeOf(err) != open || !strings.Contains(err.Error(), c.header+":") {
						t.Errorf("%s: %v", call, err)
					}
				}
			}
			if s.value("held") != "precious" || s.value("absent") != "" {
				t.Errorf("the cells hold %q and %q", s.value("held"), s.value("absent"))
			}
		})
	}
}

// checks counts the requests of checks.
func (s *stub) checks() int { return s.count("PUT /bucket/") - s.count("PUT /bucket/cell") }

// TestCheckCostsThreeRequestsOnce: three where the object does not exist yet, then two in each
// process, and none for reads.
func TestCheckCostsThreeRequestsOnce(t *testing.T) {
	s := startStub(t)
	for _, want := range []int{3, 2, 2} {
		store, before := s.openFirst(t), s.checks()
		s.read(t, store, "cell")
		if n := s.checks() - before; n != 0 {
			t.Errorf("%d requests of a check before the first write", n)
		}
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() { s.swap(t, store, fmt.Sprintf("cell-%d-%d", before, i), "", "value") })
		}
		all.Wait()
		if n := s.checks() - before; n != want {
			t.Errorf("%d requests of checks, want %d", n, want)
		}
	}
}

// TestStandbyChecksBeforeItIsElected: its first write costs one request.
func TestStandbyChecksBeforeItIsElected(t *testing.T) {
	s := startStub(t)
	store := s.openFirst(t)
	must(t, store.CheckRights(bounded(t, patience), "cell"))
	before := s.count("")
	s.swap(t, store, "cell", "", "value")
	if n := s.count("") - before; n != 1 {
		t.Errorf("%d requests for the first write", n)
	}
}

// TestSlowCheckGoesOnInTheNextCall: the server takes so long that each call has time for one
// request.
func TestSlowCheckGoesOnInTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStub(t, answering(func(_ *stub, _ http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(300 * time.Millisecond)
			return false
		}))
		store := s.openFirst(t)
		for n := 1; ; n++ {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err := store.CompareAndSwap(ctx, "cell", "", []byte("value"))
			cancel()
			if s.value("cell") != "" { // a write whose call has ended may be applied later
				break
			}
			if took := time.Since(began); n > 10 || outcomeOf(err) != open || took > 500*time.Millisecond {
				t.Fatalf("call %d after %v: %v", n, took, err)
			}
		}
	})
}

// TestWaitersForACheck: the call that checks gets no answer. Another call that waits for it ends
// with its own context, and a third one makes the check itself when the first has ended.
func TestWaitersForACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Bool
		s := startStub(t, answering(func(_ *stub, _ http.ResponseWriter, _ *http.Request) bool {
			if hung.CompareAndSwap(false, true) {
				time.Sleep(4 * time.Second)
			}
			return false
		}))
		store := s.openFirst(t)
		var all sync.WaitGroup
		for i, c := range []struct {
			limit, ends time.Duration
			fails       bool
		}{{3 * time.Second, 3 * time.Second, true}, {time.Second, time.Second, true}, {time.Minute, 3 * time.Second, false}} {
			all.Go(func() {
				began := time.Now()
				_, err := store.CompareAndSwap(bounded(t, c.limit), fmt.Sprintf("cell%d", i), "", []byte("value"))
				if took := time.Since(began); took != c.ends || (err != nil) != c.fails || outcomeOf(err) != open {
					t.Errorf("call %d ends after %v: %v", i, took, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

// TestWaitersShareAFailedCheck: of many elections in a process, not each one asks a server that is
// down.
func TestWaitersShareAFailedCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStub(t, answering(func(s *stub, w http.ResponseWriter, _ *http.Request) bool {
			time.Sleep(time.Second)
			refuse(w, 503, "ServiceUnavailable")
			return true
		}))
		store := s.openFirst(t)
		var all sync.WaitGroup
		for i := range 1_000 {
			all.Go(func() {
				_, err := store.CompareAndSwap(bounded(t, time.Minute), fmt.Sprint("cell", i), "", []byte("value"))
				if err == nil || outcomeOf(err) != open || !strings.Contains(err.Error(), "503") {
					t.Errorf("election %d: %v", i, err)
				}
			})
		}
		all.Wait()
		if n := s.count(""); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// TestChecksOfManyProcessesAgree: they begin at once on a server without the object, whose answers
// come late and whose requests may get lost. None takes the others for a fault of the server.
func TestChecksOfManyProcessesAgree(t *testing.T) {
	for range 100 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) { manyCheck(t, seed) })
	}
}

func manyCheck(t *testing.T, seed uint64) {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		time.Sleep(time.Duration(draw(20)) * time.Millisecond)
		switch draw(12) {
		case 0:
			refuse(w, 409, "ConditionalRequestConflict")
		case 1:
			refuse(w, 429, "TooManyRequests")
		case 2: // the answer is lost
			s.carryOut(discard{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	}))
	var all sync.WaitGroup
	for i := range 8 {
		store := s.openFirst(t)
		all.Go(func() {
			for {
				v, err := store.CompareAndSwap(bounded(t, time.Minute), fmt.Sprint("folder/cell", i), "", []byte("value"))
				if v != "" || errors.Is(err, driver.ErrConflict) { // after a lost answer
					return
				}
				if outcomeOf(err) != open || errors.Is(err, driver.ErrUnfit) {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestObjectOfTheCheckIsDeletedInBetween: the error is over with the next call.
func TestObjectOfTheCheckIsDeletedInBetween(t *testing.T) {
	var deleted atomic.Bool
	s := startStub(t, answering(func(s *stub, _ http.ResponseWriter, r *http.Request) bool {
		if s.value(object.ConditionsName) != "" && deleted.CompareAndSwap(false, true) {
			s.delete(discard{http.Header{}}, r)
		}
		return false
	}))
	store := s.openFirst(t)
	if _, err := store.CompareAndSwap(bounded(t, patience), "cell", "", []byte("value")); !errors.Is(err, driver.ErrUnfit) {
		t.Fatalf("the deletion came too late for this test: %v", err)
	}
	s.swap(t, store, "cell", "", "value")
}

// TestCheckWithoutItsRight: nothing is written without the check, and the error says what to grant.
// It is over when the right is granted.
func TestCheckWithoutItsRight(t *testing.T) {
	var granted atomic.Bool
	s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
		if granted.Load() || !strings.HasSuffix(r.URL.Path, object.ConditionsName) {
			return false
		}
		refuse(w, 403, "AccessDenied")
		return true
	}))
	store := s.openFirst(t, WithPrefix("elections"))
	_, swapped := store.CompareAndSwap(bounded(t, patience), "team/cell", "", []byte("value"))
	for call, err := range map[string]error{"swap": swapped, "rights": store.CheckRights(bounded(t, patience), "team/cell")} {
		check(t, call, err, denied, `"elections/team/.tenure-probe-conditions"`, "s3:PutObject", "arn:aws:s3:::bucket/elections/*")
	}
	if s.value("elections/team/cell") != "" {
		t.Error("the cell was written without the check")
	}
	granted.Store(true)
	s.swap(t, store, "team/cell", "", "value")
}

// TestCheckInAnotherFolder: the rights to the folder of one election are enough for it, even if
// another election of the same store lacks its own and checks at the same time.
func TestCheckInAnotherFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStub(t, answering(func(s *stub, w http.ResponseWriter, r *http.Request) bool {
			time.Sleep(time.Second)
			if strings.HasPrefix(r.URL.Path, "/bucket/mine/") {
				return false
			}
			refuse(w, 403, "AccessDenied")
			return true
		}))
		store := s.openFirst(t)
		var theirs sync.WaitGroup
		theirs.Go(func() {
			_, err := store.CompareAndSwap(bounded(t, time.Minute), "theirs/cell", "", []byte("value"))
			check(t, "swap", err, denied)
		})
		synctest.Wait()
		s.swap(t, store, "mine/cell", "", "value")
		theirs.Wait()
	})
}
