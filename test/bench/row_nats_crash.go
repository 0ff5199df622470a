package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var replicaCrashRow = row{
	name:    "r3-crash",
	title:   "NATS, three replicas: the leader's process is killed (SIGKILL), three candidates, lease 5 s",
	note:    "When the lease ends, and where the measures begin and end, is as in row crash",
	measure: replicaCrash,
}

func replicaCrash(b *bench) ([]measure, error) {
	const groups = 6
	rounds := b.pick(1, 10)
	all, err := parallel(groups, func(i int) ([]failover, error) {
		c, err := b.onReplicas(fmt.Sprint("r3-crash", i), 3, crashLease)
		defer c.dismiss()
		if err != nil {
			return nil, err
		}
		return c.crashes(rounds)
	})
	if err != nil {
		return nil, err
	}
	var late, total figures.Dist
	for _, f := range all {
		late, total = append(late, f.late), append(total, f.total)
	}
	return []measure{
		{what: "elected before the lease ended", value: fmt.Sprintf("%d of %d", early(late), len(late)), bound: "0",
			verdict: figures.Safe(early(late) == 0)},
		{what: "end of lease to next leader", value: late.String(), bound: "median 50 ms",
			verdict: figures.Within(late.Median() <= 50*time.Millisecond)},
		{what: "crash to next leader", value: total.String(), before: "57.4 s median, 67.5 max (TTL 30 s)", others: "etcd 3.8 s median (TTL 5 s)"},
	}, nil
}
