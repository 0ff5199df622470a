//go:build integration

package redis

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/redisd"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// place is servers of one kind, whose users have few rights.
type place struct {
	servers []*redisd.Server // that have the user
	user    string
	added   string // to the documented rights
	option  rueidis.ClientOption
	opts    []redisstore.Option
	// try opens a store and makes the calls that need the right under test.
	try func(t *testing.T, open func() (*redisstore.Store, error)) error
}

// needs is a right, and what the error says without it. If it is empty, calls work without it.
type needs struct{ right, says string }

// read reads a key.
func read(t *testing.T, open func() (*redisstore.Store, error)) error {
	s, err := open()
	if err == nil {
		_, err = s.Read(wait.Context(t), "k")
	}
	return err
}

// all runs a command on servers.
func all(t *testing.T, servers []*redisd.Server, command string) {
	t.Helper()
	for _, s := range servers {
		_, err := s.Do(wait.Context(t), strings.Fields(command)...)
		rig.Must(t, err)
	}
}

// TestRightsOfPlaces: the documented rights are enough on Sentinels, in a Cluster, and for each
// option. Without one of them, the error names it.
func TestRightsOfPlaces(t *testing.T) {
	t.Parallel()
	as := func(o rueidis.ClientOption, user string) rueidis.ClientOption {
		o.Username, o.Password = user, "s3cret"
		return o
	}
	one := redisd.Start(t, redisd.Redis)
	pair := redisd.StartGroup(t, 1)
	cluster := redisd.StartCluster(t, true)
	single := rueidis.ClientOption{InitAddress: []string{one.Address()}}
	sentinel := rueidis.ClientOption{Sentinel: rueidis.SentinelOption{MasterSet: "tenure"}}
	for _, s := range pair.Sentinels {
		sentinel.InitAddress = append(sentinel.InitAddress, s.Address())
	}
	finder := sentinel
	finder.Sentinel.Username, finder.Sentinel.Password = "finder", "s3cret"
	database := as(single, "candidate")
	database.SelectDB = 1
	for _, c := range []struct {
		name string
		place
		rights []needs
	}{
		{"Sentinels", place{servers: pair.Sentinels, user: "finder", option: finder, try: read}, []needs{
			{"+sentinel|sentinels", "give this user +sentinel|sentinels"},
			{"+sentinel|get-master-addr-by-name", "give this user +sentinel|get-master-addr-by-name"},
			{"+subscribe", ""}, {"&*", ""},
		}},
		{"servers behind Sentinels", place{
			servers: pair.Servers, user: "candidate", added: "+role +wait", option: as(sentinel, "candidate"),
			opts: []redisstore.Option{redisstore.WithWait(1)}, try: read,
		}, []needs{{"+role", "give this user +role"}, {"+wait", "give this user +wait"}}},
		{"a Cluster", place{
			servers: cluster.Servers, user: "candidate", added: "+cluster|slots +cluster|shards +asking", option: as(cluster.Options(), "candidate"),
			opts: []redisstore.Option{redisstore.WithCluster()}, try: read,
		}, []needs{{"+cluster|slots", "give this user +cluster|slots"}}},
		{"a database", place{servers: []*redisd.Server{one}, user: "candidate", added: "+select", option: database, try: read}, []needs{
			{"+select", "give this user +select"},
		}},
		{"a list", place{servers: []*redisd.Server{one}, user: "observer", option: as(single, "observer"), try: list}, []needs{
			{"+scan", "give this user +scan"},
		}},
		{"pushes", place{servers: []*redisd.Server{one}, user: "observer", option: as(single, "observer"), try: watch}, []needs{
			{"+subscribe", "give this user +subscribe"}, {"&tenure:*", "& with the channel"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, c.rights) })
	}
}

func list(t *testing.T, open func() (*redisstore.Store, error)) error {
	s, err := open()
	if err == nil {
		_, err = s.Keys(wait.Context(t))
	}
	return err
}

func watch(t *testing.T, open func() (*redisstore.Store, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	stop, err := s.Watch(wait.Context(t), "k", func(driver.Entry) {})
	if err == nil {
		stop()
	}
	return err
}

// check tries with all rights, and without each.
func (p place) check(t *testing.T, rights []needs) {
	command := redisd.Documented(t, p.user) + " " + p.added
	open := func() (*redisstore.Store, error) {
		s, err := redisstore.Open(wait.Context(t), p.option, p.opts...)
		if err == nil {
			t.Cleanup(func() { rig.Must(t, s.Close()) })
		}
		return s, err
	}
	attempt := func(setUser string) error {
		all(t, p.servers, "ACL DELUSER "+p.user)
		all(t, p.servers, setUser)
		return p.try(t, open)
	}
	if err := attempt(command); err != nil {
		t.Fatalf("with all rights: %v", err)
	}
	for _, n := range rights {
		less := strings.Replace(command+" ", " "+n.right+" ", " ", 1)
		if less == command+" " {
			t.Errorf("docs/redis.md does not give %s", n.right)
		}
		err := attempt(less)
		switch {
		case n.says == "" && err != nil:
			t.Errorf("without %s: %v", n.right, err)
		case n.says != "" && (!errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), n.says)):
			t.Errorf("without %s: got %v, want %q", n.right, err, n.says)
		}
	}
}

// TestRightToAsk: without +asking, calls fail while a slot moves, and the error names the right.
func TestRightToAsk(t *testing.T) {
	t.Parallel()
	c := redisd.StartCluster(t, false)
	user := redisd.Documented(t, "candidate") + " +cluster|slots +cluster|shards "
	all(t, c.Servers, user+"+asking")
	o := c.Options()
	o.Username, o.Password = "candidate", "s3cret"
	s, err := redisstore.Open(wait.Context(t), o, redisstore.WithCluster())
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, s.Close()) })
	_, err = s.CompareAndSwap(wait.Context(t), "billing", "", []byte("x"))
	rig.Must(t, err)
	_, _, other := c.Of(t, key)
	m := c.Move(t, key, other)
	m.Carry(t)
	if e, err := s.Read(wait.Context(t), "billing"); err != nil || string(e.Value) != "x" {
		t.Errorf("with +asking: %+v, %v", e, err)
	}
	all(t, c.Servers, "ACL SETUSER candidate -asking")
	if e, err := s.Read(wait.Context(t), "billing"); err == nil || !strings.Contains(err.Error(), "+asking") {
		t.Errorf("without +asking: %+v, %v", e, err)
	}
	m.End(t)
	wait.Succeeds(t, "a read where the slot is", func(ctx context.Context) error { _, err := s.Read(ctx, "billing"); return err })
}

// TestInspectWithoutConfig: appendfsync shows only with the right to read it.
func TestInspectWithoutConfig(t *testing.T) {
	t.Parallel()
	one := redisd.Start(t, redisd.Redis, "appendfsync everysec")
	servers := []*redisd.Server{one}
	all(t, servers, redisd.Documented(t, "observer"))
	s, err := redisstore.Open(wait.Context(t), rueidis.ClientOption{InitAddress: []string{one.Address()}, Username: "observer", Password: "s3cret"})
	rig.Must(t, err)
	t.Cleanup(func() { rig.Must(t, s.Close()) })
	for right, want := range map[string]int{"-config": 0, "+config|get": 1} {
		all(t, servers, "ACL SETUSER observer "+right)
		if found, err := s.Inspect(wait.Context(t), 0); err != nil || len(found) != want {
			t.Errorf("%s: got %v, %v", right, found, err)
		}
	}
}
