package main

import (
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

// leaseMode has the requests of a healthy election: the leader's updates, one read of each follower
// in ten leases, and hardly any list, since a watch lasts for half an hour.
var leaseMode = mode{requests: budget{"PUT": 12, "GET": 0.5*(candidates-1) + 1}}

// kubernetesSite is the library of Kubernetes, since the stand-in answers faster than an etcd can.
var kubernetesSite = site{
	name: "k8s", title: "Kubernetes: the library k8s.io/apiserver over etcd",
	rig: "k8s-apiserver", calls: calls{write: "PUT", read: "GET"},
	rows: func() []experiment {
		modes, lease := []mode{leaseMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
		return []experiment{
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10},
				late: figures.Bound{Median: 25 * time.Millisecond}},
			stops{lease: lease, of: []stopping{{mode: leaseMode, rounds: choice[int]{40, 300}}},
				late: figures.Bound{Median: 25 * time.Millisecond}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 20},
				note: "Requests as each process sends them"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			outage{modes: modes, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
		}
	},
}
