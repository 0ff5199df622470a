package tenure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// pace describes how long a store takes to answer, and what its late answers show.
type pace struct {
	read, watch, push time.Duration
	staleRead         bool  // an answer shows the state at the time of the request
	lateWatch         bool  // a watch begins with the answer, not with the request
	refused           int64 // this many watches fail
}

// paced is a store with such a pace.
type paced struct {
	*memory.Store
	pace
	watches atomic.Int64
}

var errRefused = errors.New("refused")

func (p *paced) Read(ctx context.Context, key string) (driver.Entry, error) {
	if p.staleRead {
		defer time.Sleep(p.read)
	} else {
		time.Sleep(p.read)
	}
	return p.Store.Read(ctx, key)
}

func (p *paced) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	if p.watches.Add(1) <= p.refused {
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
	return p.Store.Watch(context.WithoutCancel(ctx), key, func(e driver.Entry) {
		time.AfterFunc(p.push, func() { see(e) })
	})
}

// leads writes a record that the observer would not read again for 25 minutes if changes are
// pushed.
func leads(store *memory.Store, leader string, term int) {
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
	store := &paced{Store: memory.New(), pace: p}
	leads(store.Store, "a", 7)
	o := mustNew(t, store, "o", nil)
	time.AfterFunc(change, func() { leads(store.Store, "b", 9) })
	var stop func()
	time.AfterFunc(starts, func() { stop = o.Observe() })
	if _, err := o.Wait(t.Context(), func(s tenure.Status) bool { return s.Known }); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	last := o.Status().Leader.ID
	stop()
	time.Sleep(time.Second) // until the last calls of the store have ended
	return last
}

// severable is a store whose pushes end and begin again.
type severable struct {
	*memory.Store
	mu      sync.Mutex
	severed bool
	watches []func(driver.Entry)
}

// Watch passes entries on while pushes are not severed.
func (s *severable) Watch(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
	s.mu.Lock()
	s.watches = append(s.watches, see)
	s.mu.Unlock()
	return s.Store.Watch(ctx, key, func(e driver.Entry) {
		s.mu.Lock()
		severed := s.severed
		s.mu.Unlock()
		if !severed {
			see(e)
		}
	})
}

var errSevered = errors.New("the connection for pushes is lost")

// sever ends all pushes, and says so, or lets them pass again, and makes the elections read.
func (s *severable) sever(on bool) {
	s.mu.Lock()
	s.severed = on
	watches := s.watches
	s.mu.Unlock()
	e := driver.Entry{Unverified: true}
	if on {
		e = driver.Entry{Lost: errSevered}
	}
	for _, see := range watches {
		see(e)
	}
}

// TestLostPushesAreReported: the store says that it pushes no longer. The elections say so, and
// poll and hand over as on a store that never pushes. When pushes come again, they count again.
func TestLostPushesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &severable{Store: memory.New()}
		var log diary
		a, _ := elect(t, store, "a", func(c *tenure.Config) { c.OnEvent = log.note })
		b := start(t, mustNew(t, store, "b", nil), holdOn)
		time.Sleep(time.Minute + time.Second) // between two renewals
		store.sever(true)
		synctest.Wait()
		for _, m := range []*tenure.Election{a.election, b.election} {
			if s := m.Status(); s.Pushed || s.Leader.ID != "a" {
				t.Errorf("while nothing is pushed: %+v", s)
			}
		}
		if e := log.find(tenure.EventTrouble); e == nil || !errors.Is(e.Cause, errSevered) {
			t.Errorf("the event is %+v", e)
		}
		handOver(t, b.election, "b")
		within(t, time.Minute, b.won, "term of b, to which a handed over")
		store.sever(false)
		time.Sleep(lease)
		synctest.Wait()
		if !a.election.Status().Pushed || !b.election.Status().Pushed {
			t.Error("pushes that come again do not count")
		}
	})
}

// TestPeersReportLostPushes: a store whose members push reports the loss of each connection itself.
func TestPeersReportLostPushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &gossip{Polled: memory.NewPolled()}
		var log diary
		a, _ := elect(t, store, "a", func(c *tenure.Config) { c.OnEvent = log.note })
		time.Sleep(time.Minute)
		store.see(driver.Entry{Lost: errSevered})
		synctest.Wait()
		if e := log.find(tenure.EventTrouble); e != nil || a.election.Status().Pushed {
			t.Errorf("the event is %+v; pushed: %t", e, a.election.Status().Pushed)
		}
	})
}

// lagging is a store whose watches begin late. For 10 ms after a write, its reads show the state
// before it, as the reads of a replica do.
type lagging struct {
	*memory.Store
	begins time.Duration

	mu      sync.Mutex
	former  driver.Entry
	written time.Time
}

func (l *lagging) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	time.Sleep(l.begins)
	return l.Store.Watch(ctx, key, see)
}

func (l *lagging) Read(ctx context.Context, key string) (driver.Entry, error) {
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.written) < 10*time.Millisecond {
		return l.former, nil
	}
	return l.Store.Read(ctx, key)
}

func (l *lagging) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	time.Sleep(time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	former, err := l.Store.Read(ctx, key)
	if err != nil {
		return "", err
	}
	l.former, l.written = former, time.Now()
	return l.Store.CompareAndSwap(ctx, key, prev, value)
}

// The leader must not take a stale read for the loss of its term.
func TestWatchThatBeginsDuringATermDoesNotEndIt(t *testing.T) {
	for begins := range 10 {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New()
			former, _ := elect(t, store, "a", nil)
			_ = former.end(t)
			slow := &lagging{Store: store, begins: time.Duration(begins) * time.Millisecond}
			_, term := elect(t, slow, "b", nil)
			time.Sleep(3 * lease)
			if err := term.Err(); err != nil {
				t.Errorf("the watch begins after %d ms: %v", begins, err)
			}
		})
	}
}

// gossip is a store whose pushes come from a peer. The test plays the peer.
type gossip struct {
	*memory.Polled
	mu  sync.Mutex
	see func(driver.Entry)
}

func (g *gossip) PeerPushed() {}

func (g *gossip) Watch(_ context.Context, _ string, see func(driver.Entry)) (stop func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.see = see
	return func() {}, nil
}

// push pushes the state of the store after a change of its fields.
func (g *gossip) push(t *testing.T, change func(r map[string]any, e *driver.Entry)) {
	t.Helper()
	e, err := g.Polled.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	var r map[string]any
	d := json.NewDecoder(bytes.NewReader(e.Value))
	d.UseNumber()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	change(r, &e)
	if e.Value, err = json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	g.mu.Lock()
	see := g.see
	g.mu.Unlock()
	see(e)
}

// lies are pushes that a leader may send with its own lease and term, although the store never had
// that state.
var lies = map[string]func(r map[string]any, e *driver.Entry){
	"the last number": func(r map[string]any, _ *driver.Entry) { r["seq"], r["nonce"] = uint64(lastTerm), "forged" },
	"the last number at another version": func(r map[string]any, e *driver.Entry) {
		r["seq"], r["nonce"], e.Version = uint64(lastTerm), "forged", "forged"
	},
	"a release": func(r map[string]any, e *driver.Entry) {
		r["released"], r["nonce"], r["seq"], e.Version = true, "forged", uint64(lastTerm), "forged"
	},
	"the next number": func(r map[string]any, e *driver.Entry) {
		n, _ := r["seq"].(json.Number).Int64()
		r["seq"], r["nonce"], e.Version = n+1, "forged", "forged"
	},
}

// A hostile leader may push anything. A follower still returns to the state of the store, stops
// raising alarms, deposes no leader, and takes over in time when the leader is gone.
func TestFalsePushesOfAPeerAreForgotten(t *testing.T) {
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.NewPolled()
				cut := faulty(t, store)
				_, old := elect(t, cut, "a", nil)
				mine := &gossip{Polled: store}
				var events diary
				e := mustNew(t, mine, "b", func(c *tenure.Config) { c.OnEvent = events.note })
				b := start(t, e, holdOn)
				time.Sleep(2*lease + time.Second)
				mine.push(t, lie)
				time.Sleep(3 * lease)
				if err := old.Err(); err != nil || len(b.won) > 0 {
					t.Fatalf("a was deposed: %v", err)
				}
				if s := e.Status(); s.Leader.ID != "a" || s.Health() != nil {
					t.Errorf("b sees %q lead; health: %v", s.Leader.ID, s.Health())
				}
				alarms := events.count(tenure.EventAlarm)
				time.Sleep(20*lease + time.Millisecond)
				if n := events.count(tenure.EventAlarm); n > alarms || alarms > 1 {
					t.Errorf("%d alarms, and %d long after the lie", alarms, n-alarms)
				}
				cut.Partition()
				died := time.Now()
				next := within(t, 3*lease, b.won, "term of b")
				if took, most := time.Since(died), configOf(t, e).WorstFailover(mine)+time.Second; took > most {
					t.Errorf("b leads after %v, at most %v was promised", took, most)
				}
				if next.Token() <= old.Token() || old.Err() == nil {
					t.Errorf("token %d after %d, whose error is %v", next.Token(), old.Token(), old.Err())
				}
				cut.Heal()
			})
		})
	}
}
