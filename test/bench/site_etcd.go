package main

import (
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/tenure-go/tenure/test/internal/etcdd"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// etcdMode has the requests of a healthy election: the leader's transactions, and hardly any read.
var etcdMode = mode{requests: budget{"Txn": 12, "Range": 0.5 * (candidates - 1)}}

var (
	etcdSite = site{name: "etcd", title: "etcd, one server", rig: "etcd", rows: etcdRows(
		figures.Bound{Median: 10 * time.Millisecond})}
	etcdClusterSite = site{name: "etcd3", title: "etcd, three servers", rig: "etcd3", rows: etcdRows(
		figures.Bound{Median: 10 * time.Millisecond})}
)

func etcdRows(late figures.Bound) func() []experiment {
	modes, lease := []mode{etcdMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
	return func() []experiment {
		return []experiment{
			operations{n: choice[int]{200, 3000}},
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10}, late: late},
			stops{lease: lease, of: []stopping{{mode: etcdMode, rounds: choice[int]{40, 300}}}, late: late},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 10},
				note: "Requests as each process sends them; the stream of its watch is not counted"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			crowd{modes: modes, elections: []int{1000}, window: choice[int]{5, 60}},
			sessions{rounds: choice[int]{2, 16}, handovers: choice[int]{20, 100}},
		}
	}
}

// sessions measures the elections of etcd's own client library, for comparison.
type sessions struct{ rounds, handovers choice[int] }

const sessionTTL = 5 * time.Second

func (sessions) about() about {
	return about{"sessions", fmt.Sprintf("etcd's own elections (package concurrency) with a TTL of %v", sessionTTL),
		"In the process of the bench. A leader resigns, and the next Campaign returns; or the leader is cut off: " +
			"every byte of its connection is lost. It goes by the channel of its session, as etcd documents"}
}

func (x sessions) measure(t *trial) {
	at := t.shared().Addresses()
	prefix := "/" + t.unique("sessions")
	var handovers, elected, overlaps figures.Dist
	first, second := campaignAt(t, at, prefix), campaignAt(t, at, prefix)
	check(first.Campaign(t.ctx, "first"))
	for range pick(t.bench, x.handovers) {
		next := make(chan error, 1)
		go func() { next <- second.Campaign(t.ctx, "x") }()
		t.sleep(20 * time.Millisecond) // so that it waits
		began := time.Now()
		check(first.Resign(t.ctx))
		check(<-next)
		handovers = append(handovers, time.Since(began))
		first, second = second, first
	}
	rounds := t.repeat(x.rounds, 1)
	for range rounds {
		one, overlap := x.cutOff(t, at)
		elected = append(elected, one)
		if overlap > 0 {
			overlaps = append(overlaps, overlap)
		}
	}
	most := time.Duration(0)
	for _, o := range overlaps {
		most = max(most, o)
	}
	t.report(timed("Resign to the next leader", handovers, figures.Bound{}, ""), timed("cut to the next leader", elected, figures.Bound{}, ""),
		measure{what: "control: the session of the leader that is cut off is open when the next leads",
			value: fmt.Sprintf("%d of %d, for up to %s", len(overlaps), rounds, figures.Show(most)),
			bound: "more than 0", verdict: figures.Safe(len(overlaps) > 0)})
}

// cutOff returns how long after the cut the next leader was elected, and for how long the session
// of the one before was open after that.
func (sessions) cutOff(t *trial, at []string) (elected, overlap time.Duration) {
	prefix := "/" + t.unique("cut")
	relays := must(relay.NewSet(at))
	t.cleanup(relays.Close)
	var via []string
	for _, r := range relays {
		via = append(via, strings.TrimPrefix(r.URL(), "nats://"))
	}
	old, next := campaignAt(t, via, prefix), campaignAt(t, at, prefix)
	check(old.Campaign(t.ctx, "old"))
	leads := make(chan error, 1)
	go func() { leads <- next.Campaign(t.ctx, "next") }()
	t.sleep(time.Second)
	relays.Blackhole()
	began := time.Now()
	check(<-leads)
	elected = time.Since(began)
	select {
	case <-old.session.Done():
		return elected, 0
	default:
	}
	<-old.session.Done()
	return elected, time.Since(began) - elected
}

// campaigner is a candidate with a session.
type campaigner struct {
	*concurrency.Election
	session *concurrency.Session
}

func campaignAt(t *trial, at []string, prefix string) campaigner {
	client := must(clientv3.New(etcdd.Config(at...)))
	t.cleanup(func() { _ = client.Close() })
	session := must(concurrency.NewSession(client, concurrency.WithTTL(int(sessionTTL/time.Second))))
	return campaigner{concurrency.NewElection(session, prefix), session}
}
