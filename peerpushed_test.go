package tenure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

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
