//go:build integration

package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/redisd"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// key is where the elections of these tests are.
const key = "tenure:billing"

// inCluster opens a store over a Cluster, over the relays if there are some.
func inCluster(t testing.TB, c *redisd.Cluster, via map[string]string, opts ...redisstore.Option) *redisstore.Store {
	t.Helper()
	o := c.Options()
	o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", cmp.Or(via[address], address))
	}
	var s *redisstore.Store
	wait.Succeeds(t, "a store", func(ctx context.Context) (err error) {
		s, err = redisstore.Open(ctx, o, append(opts, redisstore.WithCluster())...)
		return err
	})
	t.Cleanup(func() { rig.Must(t, s.Close()) })
	return s
}

// offset returns how far a server is in the stream of its primary, or in its own.
func offset(t testing.TB, s *redisd.Server, name string) (n int) {
	t.Helper()
	wait.Succeeds(t, "an offset", func(ctx context.Context) error {
		text, err := s.Do(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		_, text, _ = strings.Cut(text, "\n"+name+":")
		text, _, _ = strings.Cut(text, "\r")
		n, err = strconv.Atoi(text)
		return err
	})
	return n
}

// playCluster plays a failover after which the former primary is gone, and its leader is cut off.
// The lease is longer than the Cluster needs to promote the replica.
func (f failover) playCluster(t *testing.T) (overlap, repeat bool) {
	const lease = 10 * time.Second
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := redisd.StartCluster(t, true)
	primary, replica, _ := c.Of(t, key)
	released(t, inCluster(t, c, nil))
	all := offset(t, primary, "master_repl_offset")
	wait.Until(t, "the replica has the release", func() bool { return offset(t, replica, "slave_repl_offset") >= all })
	rig.Must(t, replica.Pause())
	_, err := primary.Do(wait.Context(t), "CLIENT", "KILL", "TYPE", "replica")
	rig.Must(t, err)
	way, err := relay.NewSet(c.Options().InitAddress)
	rig.Must(t, err)
	t.Cleanup(way.Close)
	first := <-leads(t, ctx, f.left.of(inCluster(t, c, way.Via())), tenure.Config{ID: "first", Lease: lease})
	way.Blackhole()
	rig.Must(t, primary.Kill())
	rig.Must(t, replica.Resume())
	second := <-leads(t, ctx, f.left.of(inCluster(t, c, nil)), tenure.Config{ID: "second", Lease: lease})
	if now, _, _ := c.Of(t, key); now != replica {
		t.Error("the replica was not promoted")
	}
	return first.Err() == nil, second.Token() <= first.Token()
}

// leader is a leader with a lease that outlasts what happens, its followers, and a store to look.
type leader struct {
	*tenure.Term
	second <-chan *tenure.Term
	look   *redisstore.Store
}

func lead(t *testing.T, ctx context.Context, c *redisd.Cluster, opts ...redisstore.Option) leader {
	t.Helper()
	cfg := tenure.Config{ID: "first", Lease: time.Minute, Tuning: tenure.Tuning{Renew: time.Second}}
	released(t, inCluster(t, c, nil, opts...))
	l := leader{Term: <-leads(t, ctx, inCluster(t, c, nil, opts...), cfg), look: inCluster(t, c, nil, opts...)}
	cfg.ID = "second"
	l.second = leads(t, ctx, inCluster(t, c, nil, opts...), cfg)
	return l
}

// renews waits for a renewal in another era than the one before, or in the same, and returns it.
func (l leader) renews(t *testing.T, from driver.Entry, sameEra bool) (now driver.Entry) {
	t.Helper()
	wait.Succeeds(t, "a renewal", func(ctx context.Context) (err error) {
		now, err = l.look.Read(ctx, "billing")
		if err == nil && (now.Version == from.Version || (now.Era == from.Era) != sameEra || now.Unproven) {
			err = fmt.Errorf("from version %q in era %d to %q in %d, unproven: %t", from.Version, from.Era, now.Version, now.Era, now.Unproven)
		}
		return err
	})
	return now
}

// goesOn fails the test if the leader lost its term.
func (l leader) goesOn(t *testing.T) {
	t.Helper()
	select {
	case second := <-l.second:
		t.Errorf("another leader, with token %d after %d", second.Token(), l.Token())
	default:
	}
	if err := l.Err(); err != nil {
		t.Errorf("the leader lost its term: %v", err)
	}
}

// TestLeaderGoesOnAfterAFailoverThatLosesNothing: an operator promotes a replica, twice. That is
// another era each time, in which the leader finds itself.
func TestLeaderGoesOnAfterAFailoverThatLosesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := redisd.StartCluster(t, true)
	l := lead(t, ctx, c)
	before, err := l.look.Read(wait.Context(t), "billing")
	rig.Must(t, err)
	for range 2 {
		_, replica, _ := c.Of(t, key)
		replica.Failover(t)
		before = l.renews(t, before, false)
		c.Whole(t)
	}
	l.goesOn(t)
}

// TestLeaderGoesOnWhenItsSlotMoves: the slot moves to another server and back. While the key is
// there and the slot is not (ASK), calls work without WAIT, and with it fail. The servers that have
// the slot (MOVED) have eras of their own.
func TestLeaderGoesOnWhenItsSlotMoves(t *testing.T) {
	for _, replicas := range []int{0, 1} {
		t.Run(fmt.Sprintf("wait=%d", replicas), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := redisd.StartCluster(t, true)
			l := lead(t, ctx, c, redisstore.WithWait(replicas))
			first, err := l.look.Read(wait.Context(t), "billing")
			rig.Must(t, err)
			from, _, to := c.Of(t, key)
			last := first
			for _, to := range []*redisd.Server{to, from} {
				m := c.Move(t, key, to)
				last = l.renews(t, last, true)
				m.Carry(t)
				if replicas == 0 {
					last = l.renews(t, last, false)
				} else {
					_, err := l.look.Read(wait.Context(t), "billing")
					if redisstore.Code(err) != "ASK" || errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "while the slot moves") {
						t.Errorf("with WAIT, while the slot moves: %v", err)
					}
				}
				m.End(t)
				last = l.renews(t, last, replicas == 0)
			}
			if last.Era != first.Era {
				t.Errorf("the slot came back to era %d, from %d", last.Era, first.Era)
			}
			l.goesOn(t)
		})
	}
}
