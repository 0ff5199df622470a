package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

var logBrokerRow = row{
	name: "kafka-broker",
	title: "Kafka: one of three brokers is killed (SIGKILL) or frozen (SIGSTOP) for 15 s, and until all elections are renewed, and is " +
		"brought back; leases of 20 s and 10 s",
	note: "Three candidates and for each lease three elections, each in a topic that another broker leads, so that each run shows one election " +
		"whose partition the broker led and two others. In every other run it is also the active controller. Kept is as in row " +
		"kafka-restart. Back is the time from the signal to the answer to the first renewal sent after it, whether kept or not. Sessions of the brokers are 6 s. Questions and answers are those of row pause",
	measure: logBroker,
}

// part is what a broker was to an election when it fell.
type part struct {
	frozen     bool // or killed
	leads      bool // its partition
	controller bool // and does not lead its partition
	lease      time.Duration
}

func (p part) String() string {
	who, what := "another broker", "killed"
	switch {
	case p.leads:
		who = "the partition's leader"
	case p.controller:
		who = "the controller"
	}
	if p.frozen {
		what = "frozen"
	}
	return fmt.Sprintf("lease %s, %s %s: kept", figures.Show(p.lease), who, what)
}

// parts are all, in the order of the table.
func parts(leases []time.Duration) []part {
	var all []part
	for _, lease := range leases {
		for _, frozen := range []bool{false, true} {
			all = append(all, part{frozen, true, false, lease}, part{frozen, false, true, lease}, part{frozen, false, false, lease})
		}
	}
	return all
}

func logBroker(b *bench) ([]measure, error) {
	if b.quick {
		return []measure{{what: "not measured in a quick run"}}, nil
	}
	leases := []time.Duration{20 * time.Second, 10 * time.Second}
	f, err := b.field("broker", leases...)
	defer f.dismiss()
	if err != nil {
		return nil, err
	}
	crops := map[part][]crop{}
	for run := range 2 * b.repeat(1, 10) {
		if err := f.fell(run%2 == 1, run/2, crops); err != nil {
			return nil, err
		}
	}
	var found []measure
	for _, p := range parts(leases) {
		found = append(found, p.measure(crops[p]))
	}
	return append(found, f.judge(2*b.repeat(1, 10))), nil
}

// measure is one line.
func (p part) measure(crops []crop) measure {
	return keptOf(p.String(), p.lease, crops)
}

// fell kills or freezes a broker and brings it back.
func (f *field) fell(frozen bool, run int, into map[part][]crop) error {
	controller, err := f.kafka.controller(f.b.ctx)
	if err != nil {
		return err
	}
	victim := controller
	if run%2 == 1 {
		victim = (controller+run/2%2)%len(f.kafka.addresses) + 1
	}
	crops, err := f.without(victim, frozen)
	for _, h := range crops {
		p := part{frozen, h.home == victim, h.home != victim && victim == controller, h.lease}
		into[p] = append(into[p], h)
		fmt.Fprintf(f.b.log, "  %s: %t, back after %s\n", p, h.kept, figures.Show(h.back))
	}
	return err
}

// without is what happens while a broker is away, and when it returns.
func (f *field) without(victim int, frozen bool) ([]crop, error) {
	const least = 15 * time.Second
	fall := f.kafka.Kill
	if frozen {
		fall = f.kafka.Pause
	}
	began, end := machine.Now(), time.Now().Add(least)
	if err := fall(victim); err != nil {
		return nil, err
	}
	if err := f.renewed(began); err != nil {
		return nil, err
	}
	f.b.sleep(time.Until(end))
	if err := f.mend(); err != nil {
		return nil, err
	}
	return f.reap(began), nil
}
