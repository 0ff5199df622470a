package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

type clientgoClient struct {
	*clientset.Clientset
	at place
}

func openClientgo(at place) (client, error) {
	config := kubernetes(at)
	config.QPS = -1 // the default of 5 requests a second is too low for 1,000 elections
	// The stand-in for the API server speaks nothing else.
	config.ContentType = "application/json"
	c, err := clientset.NewForConfig(config)
	return clientgoClient{c, at}, err
}

// Join has the proportions of the defaults: 15 s, 10 s and 2 s.
func (c clientgoClient) Join(election string, elected, lost func()) (candidate, error) {
	ctx, stop := context.WithCancel(context.Background())
	e := &clientgoCandidate{stop: stop, ended: make(chan struct{})}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: election, Namespace: c.at.Bucket},
			Client:     c.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.at.ID},
		},
		ReleaseOnCancel: true,
		LeaseDuration:   c.at.Lease,
		RenewDeadline:   c.at.Lease * 10 / 15,
		RetryPeriod:     c.at.Lease * 2 / 15,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { elected() },
			OnStoppedLeading: lost,
		},
	})
	if err != nil {
		return nil, err
	}
	e.LeaderElector = elector
	go func() {
		defer close(e.ended)
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
	}()
	return e, nil
}

type clientgoCandidate struct {
	*leaderelection.LeaderElector
	stop  context.CancelFunc
	ended chan struct{}
}

func (e *clientgoCandidate) Leads() bool { return e.IsLeader() }

func (e *clientgoCandidate) Stop() {
	e.stop()
	<-e.ended
}
