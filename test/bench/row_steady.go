package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

var steadyRow = row{
	name:  "steady",
	title: "ten candidates in ten processes while nothing happens, lease 15 s, renewed every 5 s",
	note: "The server's own count (connz, in_msgs) of what the ten connections sent in the window, per minute: every publish " +
		"and every request, not pings and not what the server sends. Subscriptions of the bench to $KV.>, $JS.API.> and " +
		"$JS.FC.> say what they were. etcd's figure is keepalives, client-go's API calls",
	measure: steady,
}

const (
	steadyLease = 15 * time.Second
	candidates  = 10
)

func steady(b *bench) ([]measure, error) {
	window := time.Duration(b.pick(15, 60)) * time.Second
	bucket, err := b.bucket()
	if err != nil {
		return nil, err
	}
	c, err := b.cast("steady", candidates, command{Do: start, Bucket: bucket, Elections: []string{"steady"}, Lease: steadyLease})
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if err := c.join(0, c.members...); err != nil {
		return nil, err
	}
	b.sleep(2 * time.Second) // the watches are set up
	got, err := c.count(window)
	if err != nil {
		return nil, err
	}
	return got.measures(window), nil
}

// traffic is what was counted.
type traffic struct{ sent, writes, requests, flow int }

func (t traffic) measures(window time.Duration) []measure {
	perMinute := func(n int) float64 { return float64(n) * float64(time.Minute) / float64(window) }
	most := int(window/(steadyLease/3)) + 1
	return []measure{
		{what: "messages sent by all ten, per minute", value: fmt.Sprintf("%.0f (%d in %v)", perMinute(t.sent), t.sent, window),
			bound: "12: the leader's writes", verdict: figures.Within(t.sent <= most),
			before: "50.7", others: "client-go 198, etcd 300 (TTL 5 s)"},
		{what: "of these: writes / API requests / flow control", value: fmt.Sprintf("%d / %d / %d", t.writes, t.requests, t.flow),
			bound: "0 reads", verdict: figures.Within(t.requests == 0 && t.writes == t.sent)},
	}
}

// count listens for the time of the window.
func (c *cast) count(window time.Duration) (traffic, error) {
	nc := c.b.nc
	if c.on != nil {
		nc = c.on.nc
	}
	var taps []*nats.Subscription
	for _, subject := range []string{"$KV.>", "$JS.API.>", "$JS.FC.>"} {
		tap, err := nc.SubscribeSync(subject)
		if err != nil {
			return traffic{}, err
		}
		defer func() { _ = tap.Unsubscribe() }()
		taps = append(taps, tap)
	}
	if err := nc.Flush(); err != nil {
		return traffic{}, err
	}
	before, err := c.sent()
	if err != nil {
		return traffic{}, err
	}
	c.b.sleep(window)
	after, err := c.sent()
	heard := func(i int) int { n, _, _ := taps[i].Pending(); return n }
	return traffic{sent: after - before, writes: heard(0), requests: heard(1), flow: heard(2)}, err
}

// sent is how many messages the servers have received on the members' connections.
func (c *cast) sent() (int, error) {
	found, total := 0, 0
	for _, s := range c.servers() {
		n, sent, err := c.sentTo(s)
		if err != nil {
			return 0, err
		}
		found, total = found+n, total+sent
	}
	if found != len(c.members) {
		return 0, fmt.Errorf("%w: the server shows %d of %d connections", errBusy, found, len(c.members))
	}
	return total, nil
}

// servers are those of the members.
func (c *cast) servers() []*natsd.Server {
	if c.on != nil {
		return c.on.Servers[:]
	}
	return []*natsd.Server{c.b.server}
}

// sentTo is how many connections of members one server has, and how many messages it has received over them.
func (c *cast) sentTo(s *natsd.Server) (found, total int, err error) {
	answer, err := http.Get(s.Monitor() + "/connz?limit=10000")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	var connz struct {
		Connections []struct {
			Name   string `json:"name"`
			InMsgs int    `json:"in_msgs"`
		} `json:"connections"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&connz); err != nil {
		return 0, 0, err
	}
	for _, conn := range connz.Connections {
		if c.member(conn.Name) != nil {
			found, total = found+1, total+conn.InMsgs
		}
	}
	return found, total, nil
}
