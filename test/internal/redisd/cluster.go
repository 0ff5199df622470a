package redisd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// Cluster has three primaries, each with a replica or none.
type Cluster struct {
	Servers []*Server
	members int
}

const (
	primaries = 3
	slots     = 16384
)

// StartCluster runs a Cluster for the length of a test.
func StartCluster(t testing.TB, replicas bool) *Cluster {
	t.Helper()
	ctx, c := wait.Context(t), &Cluster{members: primaries}
	if replicas {
		c.members *= 2
	}
	for i := range c.members {
		one := Start(t, Redis, "cluster-enabled yes", "cluster-node-timeout 2000", "cluster-replica-validity-factor 0", "cluster-allow-replica-migration no")
		c.Servers = append(c.Servers, one)
		if i < primaries {
			_, err := one.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/primaries), strconv.Itoa((i+1)*slots/primaries-1))
			rig.Must(t, err)
		}
		_, err := one.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
		rig.Must(t, err)
		rig.Must(t, one.Meet(ctx, c.Servers[0]))
	}
	c.known(t)
	for i, one := range c.Servers[primaries:] {
		id, err := c.Servers[i].Do(ctx, "CLUSTER", "MYID")
		rig.Must(t, err)
		_, err = one.Do(ctx, "CLUSTER", "REPLICATE", id)
		rig.Must(t, err)
	}
	c.Whole(t)
	return c
}

// known waits until each server knows all others.
func (c *Cluster) known(t testing.TB) {
	t.Helper()
	for _, one := range c.Servers {
		wait.Succeeds(t, "each server knows all others", func(ctx context.Context) error {
			text, err := one.Do(ctx, "CLUSTER", "NODES")
			if err == nil && (strings.Count(text, " connected") != c.members || strings.Contains(text, "handshake")) {
				err = errors.New(text)
			}
			return err
		})
	}
}

// Whole waits until all slots are served, each replica follows its primary, and all servers know.
func (c *Cluster) Whole(t testing.TB) {
	t.Helper()
	for _, one := range c.Servers {
		wait.Succeeds(t, "the Cluster is whole", func(ctx context.Context) error {
			state, err := one.Do(ctx, "CLUSTER", "INFO")
			if err != nil {
				return err
			}
			view, err := one.Do(ctx, "CLUSTER", "NODES")
			if err == nil && strings.Count(view, "slave ") != c.members-primaries {
				err = errors.New(view)
			}
			if err != nil {
				return err
			}
			text, err := one.Do(ctx, "INFO", "replication")
			leads := hasLine(text, "role:master") && hasLine(text, fmt.Sprint("connected_slaves:", c.members/primaries-1))
			follows := hasLine(text, "master_link_status:up")
			if err == nil && (!hasLine(state, "cluster_state:ok") || !leads && !follows) {
				err = errors.New(state + text)
			}
			return err
		})
	}
}

// Options are those of a client.
func (c *Cluster) Options() (o rueidis.ClientOption) {
	for _, one := range c.Servers {
		o.InitAddress = append(o.InitAddress, one.Address())
	}
	return o
}

// node is a line of CLUSTER NODES.
type node struct {
	server  *Server
	id, of  string // the server's, and its primary's
	primary bool
	slots   []string
}

// nodes returns the servers as one of them sees them.
func (c *Cluster) nodes(t testing.TB) (all []node) {
	t.Helper()
	wait.Succeeds(t, "the map of the Cluster", func(ctx context.Context) (err error) {
		var text string
		for _, one := range c.Servers {
			if text, err = one.Do(ctx, "CLUSTER", "NODES"); err == nil {
				break
			}
		}
		all = nil
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			for _, one := range c.Servers {
				if strings.HasPrefix(f[1], one.Address()+"@") {
					primary := strings.Contains(f[2], "master") && len(f) > 8
					all = append(all, node{one, f[0], f[3], primary, f[8:]})
				}
			}
		}
		return err
	})
	return all
}

// has reports whether a node serves a slot.
func (n node) has(slot int) bool {
	for _, s := range n.slots {
		low, high, several := strings.Cut(s, "-")
		if !several {
			high = low
		}
		from, bad := strconv.Atoi(low) // a slot on the move has brackets
		to, _ := strconv.Atoi(high)
		if bad == nil && from <= slot && slot <= to {
			return true
		}
	}
	return false
}

// Of returns the primary that serves a key, its replica (nil: there is none), and another primary.
func (c *Cluster) Of(t testing.TB, key string) (primary, replica, other *Server) {
	t.Helper()
	slot, all := c.slot(t, key), c.nodes(t)
	id := ""
	for _, n := range all {
		switch {
		case n.primary && n.has(slot):
			primary, id = n.server, n.id
		case n.primary:
			other = n.server
		}
	}
	for _, n := range all {
		if n.of == id {
			replica = n.server
		}
	}
	if primary == nil {
		t.Fatalf("no server has slot %d", slot)
	}
	return primary, replica, other
}

func (c *Cluster) slot(t testing.TB, key string) (slot int) {
	t.Helper()
	wait.Succeeds(t, "the slot of a key", func(ctx context.Context) error {
		var failed error
		for _, one := range c.Servers {
			o, err := one.client()
			if err == nil {
				var n int64
				n, err = o.Do(ctx, o.B().ClusterKeyslot().Key(key).Build()).AsInt64()
				slot = int(n)
				o.Close()
			}
			if failed = errors.Join(failed, err); err == nil {
				return nil
			}
		}
		return failed
	})
	return slot
}

// Move is the move of a key and its slot to another server. Its methods are its steps, in this
// order.
type Move struct {
	cluster          *Cluster
	from, to         *Server
	slot             string
	sender, receiver string
	key              string
}

// Move marks the slot as on the move: keys that are not there any more are asked for at the other
// server (ASK).
func (c *Cluster) Move(t testing.TB, key string, to *Server) Move {
	t.Helper()
	from, _, _ := c.Of(t, key)
	ctx, m := wait.Context(t), Move{cluster: c, from: from, to: to, slot: strconv.Itoa(c.slot(t, key)), key: key}
	var err error
	m.sender, err = from.Do(ctx, "CLUSTER", "MYID")
	rig.Must(t, err)
	m.receiver, err = to.Do(ctx, "CLUSTER", "MYID")
	rig.Must(t, err)
	_, err = to.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.sender)
	rig.Must(t, err)
	_, err = from.Do(ctx, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.receiver)
	rig.Must(t, err)
	return m
}

// Carry moves the key.
func (m Move) Carry(t testing.TB) {
	t.Helper()
	_, err := m.from.Do(wait.Context(t), "MIGRATE", ports.Host, strconv.Itoa(m.to.port), m.key, "0", "5000")
	rig.Must(t, err)
}

// End gives the slot to the other server: the former one answers MOVED. Each other primary learns
// it, too.
func (m Move) End(t testing.TB) {
	t.Helper()
	all := []*Server{m.to, m.from}
	for _, n := range m.cluster.nodes(t) {
		if n.primary && n.server != m.to && n.server != m.from {
			all = append(all, n.server)
		}
	}
	for _, one := range all {
		_, err := one.Do(wait.Context(t), "CLUSTER", "SETSLOT", m.slot, "NODE", m.receiver)
		rig.Must(t, err)
	}
}

// clustered is a store over a Cluster without replicas.
func clustered(c *Cluster) *site {
	s := &site{servers: c.Servers, option: c.Options(), opts: []redisstore.Option{redisstore.WithCluster()}}
	s.faults = []rig.Fault{
		c.restarted("all restarted", "what a Cluster acknowledged is on the disks of its primaries", 0, primaries),
		c.restarted("Cluster down", "a Cluster without most of its primaries acknowledges nothing", 4*time.Second, primaries-1),
	}
	s.faults[0].Quick = true
	return s
}

// restarted is a fault that kills some of the primaries, and starts them again.
func (c *Cluster) restarted(name, why string, lasts time.Duration, n int) rig.Fault {
	return rig.Fault{
		Name: name, Why: why, Before: 400 * time.Millisecond, Lasts: lasts, Least: lasts + 4*time.Second, Unknowns: 4,
		Fall: func(t testing.TB, _ *rand.Rand) func() {
			for _, one := range c.Servers[:n] {
				rig.Must(t, one.Kill())
			}
			return func() {
				for _, one := range c.Servers[:n] {
					rig.Must(t, one.Start())
				}
				c.Whole(t)
			}
		},
	}
}

// replicated is a store over a Cluster with replicas, which waits for them.
func replicated(c *Cluster) *site {
	s := &site{servers: c.Servers, option: c.Options(), opts: []redisstore.Option{redisstore.WithCluster(), redisstore.WithWait(1)}}
	pick := func(t testing.TB, rng *rand.Rand) (primary, replica *Server) {
		primary, replica, _ = c.Of(t, strconv.Itoa(rng.Int()))
		return primary, replica
	}
	s.faults = []rig.Fault{
		{
			Name: "failover", Why: "a failover that an operator asks for loses nothing", Before: time.Second, Lasts: time.Second, Least: 8 * time.Second,
			Fall: func(t testing.TB, rng *rand.Rand) func() {
				_, replica := pick(t, rng)
				replica.Failover(t)
				return func() { c.Whole(t) }
			},
		},
		{
			Name: "primary killed", Why: "a promoted replica has all that was acknowledged or read",
			Before: time.Second, Lasts: 6 * time.Second, Least: 12 * time.Second, Unknowns: 1,
			Fall: func(t testing.TB, rng *rand.Rand) func() {
				old, _ := pick(t, rng)
				rig.Must(t, old.Kill())
				return func() {
					rig.Must(t, old.Start())
					c.Whole(t)
				}
			},
		},
		{
			Name: "slots moved", Why: "a slot that moves takes its keys along", Before: time.Second, Least: 8 * time.Second,
			Fall: func(t testing.TB, rng *rand.Rand) func() {
				for _, key := range c.keys(t) {
					_, _, other := c.Of(t, key)
					m := c.Move(t, key, other)
					rig.Sleep(t.Context(), time.Duration(rng.Int64N(int64(200*time.Millisecond))))
					m.Carry(t)
					rig.Sleep(t.Context(), time.Duration(rng.Int64N(int64(200*time.Millisecond))))
					m.End(t)
				}
				return func() { c.Whole(t) }
			},
		},
	}
	return s
}

// Failover promotes a replica, which waits for the last writes of its primary. It asks again if
// other primaries do not agree in time.
func (s *Server) Failover(t testing.TB) {
	t.Helper()
	wait.Succeeds(t, "a failover", func(ctx context.Context) error {
		promoted := func() bool {
			text, err := s.Do(ctx, "INFO", "replication")
			return err == nil && hasLine(text, "role:master")
		}
		if promoted() {
			return nil
		}
		if _, err := s.Do(ctx, "CLUSTER", "FAILOVER"); err != nil {
			return err
		}
		if !wait.Within(6*time.Second, promoted) {
			return errors.New("the replica is not promoted")
		}
		return nil
	})
}

// keys returns all keys, without their slots' other keys.
func (c *Cluster) keys(t testing.TB) (all []string) {
	t.Helper()
	seen := map[int]bool{}
	for _, n := range c.nodes(t) {
		if !n.primary {
			continue
		}
		o := n.server.Operator(t)
		found, err := o.Do(wait.Context(t), o.B().Keys().Pattern("*").Build()).AsStrSlice()
		rig.Must(t, err)
		for _, key := range found {
			if slot := c.slot(t, key); !seen[slot] {
				seen[slot] = true
				all = append(all, key)
			}
		}
	}
	return all
}
