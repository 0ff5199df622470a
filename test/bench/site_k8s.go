package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/k8sd"
)

// leaseMode has the requests of a healthy election: the leader's updates, one read of each follower
// in ten leases, and hardly any list, since a watch lasts for half an hour.
var leaseMode = mode{requests: budget{"PUT": 12, "GET": 0.5*(candidates-1) + 1}}

// kubernetesSite is the library of Kubernetes, since the stand-in answers faster than an etcd can.
var kubernetesSite = site{
	name: "kubernetes", title: "Kubernetes: the library k8s.io/apiserver over etcd",
	rig: "k8s-apiserver",
	rows: func() []experiment {
		modes, lease := []mode{leaseMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
		return []experiment{
			operations{n: choice[int]{200, 2000}},
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10},
				late: figures.Bound{Median: 10 * time.Millisecond}},
			stops{lease: lease, of: []stopping{{mode: leaseMode, rounds: choice[int]{40, 300}}},
				late: figures.Bound{Median: 10 * time.Millisecond}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 20},
				note: "Requests as each process sends them"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			outage{modes: modes, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
			electors{rounds: choice[int]{4, 30}},
		}
	},
}

// electors are candidates of client-go on the same server, for comparison.
type electors struct{ rounds choice[int] }

func (electors) about() about {
	return about{"client-go", "electors of client-go, ten in this process, LeaseDuration 15 s, RenewDeadline 10 s, RetryPeriod 2 s (a third of each in a quick run)",
		"A crash is the end of all requests of the leader. From the last renewal that it sent, or from its release, to the start of the next leader"}
}

// elector is one of client-go. Its requests are counted, and may be cut off.
type elector struct {
	id       string
	requests *atomic.Int64
	cut      atomic.Bool
	sent     atomic.Int64 // the time of the last update
	release  context.CancelFunc
	ended    chan struct{}
}

var errCut = errors.New("the elector is cut off")

// RoundTrip counts a request, and sends it unless the elector is cut off.
func (e *elector) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if e.cut.Load() {
			return nil, errCut
		}
		e.requests.Add(1)
		if r.Method == http.MethodPut {
			e.sent.Store(time.Now().UnixNano())
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start starts an elector, which says on led that it leads.
func (e *elector) start(config *rest.Config, lease time.Duration, led chan<- *elector) {
	own := rest.CopyConfig(config)
	own.WrapTransport, own.QPS = e.through, -1
	lock := &resourcelock.LeaseLock{
		LeaseMeta: meta.ObjectMeta{Namespace: k8sd.Namespace, Name: "client-go"}, Client: must(coordination.NewForConfig(own)),
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.id},
	}
	ctx, cancel := context.WithCancel(context.Background())
	e.release, e.ended = cancel, make(chan struct{})
	go func() {
		defer close(e.ended)
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: lease, RenewDeadline: lease * 2 / 3, RetryPeriod: lease * 2 / 15, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { led <- e }, OnStoppedLeading: func() {}},
		})
	}()
}

func (x electors) measure(t *trial) {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	lease := pick(t.bench, choice[time.Duration]{5 * time.Second, 15 * time.Second})
	config := &rest.Config{
		Host: "https://" + t.shared().Addresses()[0], BearerToken: k8sd.Admin, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	var requests atomic.Int64
	led, n := make(chan *elector, candidates), 0
	all := map[*elector]bool{}
	join := func() {
		e := &elector{id: fmt.Sprint("elector-", n), requests: &requests}
		n++
		all[e] = true
		e.start(config, lease, led)
	}
	leave := func(e *elector) {
		e.release()
		<-e.ended
		delete(all, e)
	}
	for range candidates {
		join()
	}
	leader := <-led
	var crashes, releases figures.Dist
	for range pick(t.bench, x.rounds) {
		leader.cut.Store(true)
		last := time.Unix(0, leader.sent.Load())
		next := <-led
		crashes = append(crashes, time.Since(last)-lease)
		leave(leader)
		join()
		time.Sleep(lease / 2) // so that all have seen the leader
		began := time.Now()
		leave(next)
		leader = <-led
		releases = append(releases, time.Since(began))
		join()
	}
	before, window := requests.Load(), 4*lease
	time.Sleep(window)
	perMinute := float64(requests.Load()-before) * float64(time.Minute) / float64(window) * float64(lease) / float64(15*time.Second)
	for e := range all {
		leave(e)
	}
	t.report(timed("end of lease to next leader", crashes, figures.Bound{}, ""), timed("release to next leader", releases, figures.Bound{}, ""),
		measure{what: "requests a minute with a lease of 15 s", value: fmt.Sprintf("%.0f", perMinute)})
}
