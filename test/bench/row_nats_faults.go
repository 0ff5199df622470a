package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

var replicaFaultsRow = row{
	name: "r3-faults",
	title: "NATS, three replicas: one of three servers is shut down, killed (SIGKILL), frozen (SIGSTOP) or cut off from the two others for 22 s, and " +
		"comes back; all are restarted one after another; leases of 20 s, 10 s and 5 s",
	note: "Three candidates and for each lease three elections, each in a bucket that another server leads, so that each run shows one election " +
		"whose bucket the server led and two others. Candidates have connections for their elections alone (natskv.OwnConnection), each first to " +
		"another server. Kept is where nobody else was elected until all was as before. Back is the time from the fault to the answer to " +
		"the first renewal sent after it, whether kept or not. What servers say to each other passes through relays. Questions and answers are " +
		"those of row pause. The control's candidates know one server each, and the leader's freezes",
	measure: replicaFaults,
}

// serverFault is what befalls one server, and what ends it.
type serverFault struct {
	name       string
	fall, rise func(*replicas, *natsd.Server) error
}

func serverFaults() []serverFault {
	start := func(_ *replicas, s *natsd.Server) error { return s.Start() }
	return []serverFault{
		{"shut down", func(_ *replicas, s *natsd.Server) error { return s.Stop() }, start},
		{"killed", func(_ *replicas, s *natsd.Server) error { s.Kill(); return nil }, start},
		{"frozen", func(_ *replicas, s *natsd.Server) error { return s.Pause() },
			func(_ *replicas, s *natsd.Server) error { return s.Resume() }},
		{"cut off", func(r *replicas, s *natsd.Server) error { r.Part(s); return nil },
			func(r *replicas, s *natsd.Server) error { r.Heal(s); return nil }},
	}
}

const rolling = "rolling restart"

// share is what a fault was to an election.
type share struct {
	fault string
	leads bool // the server led the bucket
	lease time.Duration
}

func (s share) String() string {
	switch {
	case s.fault == rolling:
		return fmt.Sprintf("lease %s, %s: kept", figures.Show(s.lease), s.fault)
	case s.leads:
		return fmt.Sprintf("lease %s, the bucket's leader %s: kept", figures.Show(s.lease), s.fault)
	}
	return fmt.Sprintf("lease %s, another server %s: kept", figures.Show(s.lease), s.fault)
}

// shares are all, in the order of the table.
func shares(leases []time.Duration) (all []share) {
	for _, lease := range leases {
		for _, f := range serverFaults() {
			all = append(all, share{f.name, true, lease}, share{f.name, false, lease})
		}
		all = append(all, share{rolling, false, lease})
	}
	return all
}

func replicaFaults(b *bench) ([]measure, error) {
	leases, faults := []time.Duration{20 * time.Second, 10 * time.Second, 5 * time.Second}, serverFaults()
	if b.quick {
		leases, faults = leases[:1], faults[:1]
	}
	f, err := b.replicaField(leases...)
	defer f.dismiss()
	if err != nil {
		return nil, err
	}
	crops, runs := map[share][]crop{}, 0
	for round := range b.repeat(1, 10) {
		for i, fault := range faults {
			runs++
			if err := f.suffer(fault, (round+i)%natsd.Members, crops); err != nil {
				return nil, err
			}
		}
		runs++
		if err := f.roll(crops); err != nil {
			return nil, err
		}
	}
	var found []measure
	for _, s := range shares(leases) {
		if len(crops[s]) > 0 {
			found = append(found, keptOf(s.String(), s.lease, crops[s]))
		}
	}
	found = append(found, f.judge(runs))
	control, err := f.control()
	return append(found, control), err
}

// suffer has one server fall, and rise again.
func (f *replicaField) suffer(fault serverFault, victim int, into map[share][]crop) error {
	least := 22 * time.Second
	if f.b.quick {
		least = 0
	}
	began, end := machine.Now(), time.Now().Add(least)
	if err := fault.fall(f.on, f.on.Servers[victim]); err != nil {
		return err
	}
	if err := f.renewed(began); err != nil {
		return err
	}
	f.b.sleep(time.Until(end))
	if err := fault.rise(f.on, f.on.Servers[victim]); err != nil {
		return err
	}
	if err := f.mend(); err != nil {
		return err
	}
	f.note(fault.name, victim, began, into)
	return nil
}

// roll restarts all servers in good order, one after another, each when nothing is behind.
func (f *replicaField) roll(into map[share][]crop) error {
	began := machine.Now()
	for _, s := range f.on.Servers {
		if err := s.Stop(); err != nil {
			return err
		}
		if err := s.Start(); err != nil {
			return err
		}
		if err := f.whole(); err != nil {
			return err
		}
	}
	if err := f.mend(); err != nil {
		return err
	}
	f.note(rolling, -1, began, into)
	return nil
}

// note takes down what became of all elections.
func (f *replicaField) note(fault string, victim int, began int64, into map[share][]crop) {
	for _, h := range f.reap(began) {
		s := share{fault, h.home == victim, h.lease}
		into[s] = append(into[s], h)
		fmt.Fprintf(f.b.log, "  %s: %t, back after %s\n", s, h.kept, figures.Show(h.back))
		f.explain(h, began)
	}
}
