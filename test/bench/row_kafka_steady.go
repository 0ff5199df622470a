package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var logSteadyRow = row{
	name:  "kafka-steady",
	title: "Kafka: ten candidates in ten processes while nothing happens, lease 15 s, renewed every 5 s",
	note: "Requests as the processes write them to connections, by kind, per minute, of all ten; in log mode, and with a consumer group of " +
		"sessions of 15 s that nominates. A fetch ends with a record or after 5 s, so each candidate fetches once or twice for each renewal. " +
		"goNELI's figure is of ten candidates with its defaults",
	measure: logSteady,
}

// neliRequests is what goNELI makes in a minute with ten candidates.
const neliRequests = 1334

func logSteady(b *bench) ([]measure, error) {
	return several(b, 2, func(i int) ([]measure, error) {
		return b.logRates(scene{name: fmt.Sprint("steady", i), members: candidates, elections: 1, lease: steadyLease,
			session: time.Duration(i) * steadyLease})
	})
}

func (b *bench) logRates(s scene) ([]measure, error) {
	c, err := b.logStage(s)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if _, err := c.enthrone(); err != nil {
		return nil, err
	}
	b.sleep(s.session / 4) // the group hears of the last member
	window := time.Duration(b.pick(10, 120)) * time.Second
	rates, err := c.requests(window)
	if err != nil {
		return nil, err
	}
	produces := rates["Produce"]
	return []measure{
		{what: s.mode() + ": requests of all ten, per minute", value: fmt.Sprintf("%.0f: %s", rates.sum(), rates),
			bound: fmt.Sprint("below ", neliRequests), verdict: figures.Within(rates.sum() < neliRequests), others: fmt.Sprint("goNELI ", neliRequests)},
		{what: s.mode() + ": Produce", value: fmt.Sprintf("%.1f", produces), bound: "12: the leader's renewals",
			verdict: figures.Within(produces <= 12+float64(time.Minute)/float64(window))}, // one more at an edge of the window
	}, nil
}

// rates are requests per minute by kind.
type rates map[string]float64

func (r rates) sum() float64 {
	total := 0.0
	for _, n := range r {
		total += n
	}
	return total
}

func (r rates) String() string {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		if r[kind] > 0 {
			all = append(all, fmt.Sprintf("%s %.0f", kind, r[kind]))
		}
	}
	return strings.Join(all, ", ")
}

// requests counts those of all members in a window in which nobody becomes leader.
func (c *cast) requests(window time.Duration) (rates, error) {
	before, err := c.usages()
	if err != nil {
		return nil, err
	}
	mark := c.journal.mark()
	c.b.sleep(window)
	after, err := c.usages()
	if err != nil {
		return nil, err
	}
	found := rates{}
	for i, u := range after {
		minutes := time.Duration(u.At - before[i].At).Minutes()
		for kind, n := range u.Requests {
			found[kind] += float64(n-before[i].Requests[kind]) / minutes
		}
	}
	news, _ := c.journal.since(mark)
	if e, changed := last(news, func(e entry) bool { return e.What == leads }); changed {
		return nil, fmt.Errorf("%w: %s became leader of %s", errBusy, e.who, e.Election)
	}
	return found, nil
}
