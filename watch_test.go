package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
)

// pace describes how long a store takes to answer, and what its late answers show.
type pace struct {
	read, watch, push time.Duration
	staleRead         bool  // an answer shows the state at the time of the request
	lateWatch         bool  // a watch begins with the answer, not with the request
	refused           int64 // this many watches fail
}

var errRefused = errors.New("refused")

// over returns a link with this pace to a store that pushes.
func (p pace) over(store *memory.Store) *hooked {
	var watches atomic.Int64
	return &hooked{
		Store: store,
		before: func(_ context.Context, op faults.Op, _ string, _ []byte) error {
			if op == faults.Read && !p.staleRead {
				time.Sleep(p.read)
			}
			return nil
		},
		read: func(*driver.Entry) {
			if p.staleRead {
				time.Sleep(p.read)
			}
		},
		watch: func(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
			if watches.Add(1) <= p.refused {
				time.Sleep(p.watch)
				return nil, errRefused
			}
			if p.lateWatch {
				time.Sleep(p.watch)
			} else {
				defer time.Sleep(p.watch)
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return store.Watch(context.WithoutCancel(ctx), key, func(e driver.Entry) {
				time.AfterFunc(p.push, func() { see(e) })
			})
		},
	}
}

// showLeader writes a record that the observer would not read again for 25 minutes if changes are
// pushed.
func showLeader(store *memory.Store, leader string, term int) {
	store.Put(key, fmt.Appendf(nil, `{"leaderID":%q,"incarnation":"i","term":%d,"leaseMillis":3600000,"seq":1,"nonce":%q}`, leader, term, leader))
}

// TestObserverMissesNoChange tries any order of the answers to reads and watches, of a change, and
// of one observer that stops and another that starts.
func TestObserverMissesNoChange(t *testing.T) {
	const ms = time.Millisecond
	for _, p := range paces([]time.Duration{0, 2 * ms, 5 * ms}) {
		for _, starts := range []time.Duration{0, ms, 3 * ms, 6 * ms, 20 * ms} {
			for change := ms; change < 13*ms; change += 2 * ms {
				synctest.Test(t, func(t *testing.T) {
					if l := lastLeader(t, p, starts, change); l != "b" {
						t.Errorf("%+v, another observer after %v, b leads after %v: it sees %q", p, starts, change, l)
					}
				})
			}
		}
	}
}

func paces(delays []time.Duration) (all []pace) {
	for _, read := range delays {
		for _, watch := range delays {
			for bits := range 16 {
				p := pace{read: read, watch: watch, staleRead: bits&1 > 0, lateWatch: bits&2 > 0, refused: int64(bits & 4 / 4)}
				if bits&8 > 0 {
					p.push = delays[1]
				}
				all = append(all, p)
			}
		}
	}
	return all
}

// lastLeader returns the leader that an observer sees a minute after a change from a to b. Another
// observer begins at once and stops when it knows a leader, as Wait does.
func lastLeader(t *testing.T, p pace, starts, change time.Duration) string {
	t.Helper()
	store := memory.New()
	showLeader(store, "a", 7)
	s := &scene{t, store, p.over(store)}
	o := s.new("o")
	time.AfterFunc(change, func() { showLeader(store, "b", 9) })
	var stop func()
	time.AfterFunc(starts, func() { stop = o.observe() })
	o.waits(func(tenure.Status) bool { return true })
	time.Sleep(time.Minute)
	synctest.Wait()
	last := o.Status().Leader.ID
	stop()
	time.Sleep(time.Second) // until the last calls of the store have ended
	return last
}

var errSevered = errors.New("the connection for pushes is lost")

// severable returns a link whose pushes end and begin again. sever ends all pushes, and says so, or
// lets them pass again, and makes the elections read.
func severable(store *memory.Store) (link *hooked, sever func(on bool)) {
	var mu sync.Mutex
	var severed atomic.Bool
	var watches []func(driver.Entry)
	watch := func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		mu.Lock()
		watches = append(watches, see)
		mu.Unlock()
		return store.Watch(ctx, key, func(e driver.Entry) {
			if !severed.Load() {
				see(e)
			}
		})
	}
	return &hooked{Store: store, watch: watch}, func(on bool) {
		severed.Store(on)
		e := driver.Entry{Unverified: true}
		if on {
			e = driver.Entry{Lost: errSevered}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, see := range watches {
			see(e)
		}
	}
}

func TestPushes(t *testing.T) {
	scenes{
		// The store says that it pushes no longer. The elections say so, and poll and hand over as
		// on a store that never pushes. When pushes come again, they count again.
		"lost ones are reported": func(s *scene) {
			link, sever := severable(s.store.(*memory.Store))
			s = s.over(link)
			a, _ := s.elect("a")
			b := s.run("b")
			time.Sleep(time.Minute + time.Second) // between two renewals
			sever(true)
			synctest.Wait()
			for _, p := range []*process{a, b} {
				if got := p.Status(); got.Pushed || got.Leader.ID != "a" {
					s.Errorf("while nothing is pushed: %+v", got)
				}
			}
			a.reports(tenure.EventTrouble, errSevered)
			b.handOver("b")
			b.leads()
			sever(false)
			time.Sleep(lease)
			synctest.Wait()
			if !a.Status().Pushed || !b.Status().Pushed {
				s.Error("pushes that come again do not count")
			}
		},
		// A push that waited while none came may name a version that the store has given again.
		"the election reads after the first push that follows a loss": func(s *scene) {
			renew := func(seq int) driver.Version {
				return s.put(`{"leaderID":"z","incarnation":"i","term":5,"leaseMillis":15000,"seq":%d,"nonce":"n%[1]d"}`, seq)
			}
			renew(1)
			g := newGossip(s.store)
			g.able = nil // not by a peer
			var asked []faults.Op
			g.before = func(_ context.Context, op faults.Op, _ string, _ []byte) error {
				asked = append(asked, op)
				return nil
			}
			s.over(g).run("b", func(c *tenure.Config) {
				c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second
			})
			synctest.Wait()
			g.see(driver.Entry{Lost: errSevered})
			for seq := 2; seq < 15; seq++ { // a minute, with a read each second
				time.Sleep(5 * time.Second)
				renew(seq)
			}
			time.Sleep(time.Second + atOnce)
			synctest.Wait()
			asked = nil
			g.see(driver.Entry{Version: s.read().Version + "0", Value: []byte(
				`{"leaderID":"z","incarnation":"i","term":5,"leaseMillis":15000,"seq":99,"nonce":"r","released":true}`)})
			time.Sleep(atOnce)
			synctest.Wait()
			if len(asked) == 0 || asked[0] != faults.Read {
				s.Errorf("after the push it sends %v, want a read first", asked)
			}
		},
		// A store whose members push reports the loss of each connection itself.
		"peers report lost ones themselves": func(s *scene) {
			peer := newGossip(s.store)
			a, _ := s.over(peer).elect("a")
			time.Sleep(time.Minute)
			peer.see(driver.Entry{Lost: errSevered})
			a.hides(tenure.EventTrouble)
			if a.Status().Pushed {
				s.Error("they count")
			}
		},
	}.play(t, watched)
}

// gossip is a store whose pushes come from a peer. The test plays the peer.
type gossip struct {
	hooked
	mu   sync.Mutex
	last func(driver.Entry)
}

func newGossip(store driver.Store) *gossip {
	g := &gossip{}
	g.Store = store
	g.able = func(a *driver.Abilities) { a.Peers = peers{a.Watcher} }
	g.watch = func(_ context.Context, _ string, see func(driver.Entry)) (stop func(), err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.last = see
		return func() {}, nil
	}
	return g
}

// see pushes an entry.
func (g *gossip) see(e driver.Entry) {
	g.mu.Lock()
	see := g.last
	g.mu.Unlock()
	see(e)
}
