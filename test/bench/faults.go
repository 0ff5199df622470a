package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// faults fails servers one by one, under leaders with long and short leases.
type faults struct {
	away choice[time.Duration] // how long a server is away at least
}

func (x faults) about() about {
	return about{"faults", fmt.Sprintf("one of three servers is killed (SIGKILL), frozen (SIGSTOP), "+
		"and on NATS shut down or cut off from the others, for %v and until all elections are renewed, "+
		"and comes back; all are restarted one after another; leases of 20 s, 10 s and 5 s", x.away),
		"Three candidates and for each lease three elections, each in a bucket that another server " +
			"leads. Each candidate connects to another server first, on NATS with natskv.OwnConnection. " +
			"On Kafka every other victim is the active controller. Kept is an election in which nobody " +
			"was elected until all was as before. Back is the time from the fault to the answer to the " +
			"first renewal sent after it; the gap is the longest time from the answer to one renewal to " +
			"that to the next. The control's leaders are paused"}
}

// plot is one election.
type plot struct {
	election, bucket string
	lease            time.Duration
	home             int // the server that leads its bucket unless it is down
}

// field is a crew that campaigns in buckets of all servers.
type field struct {
	*crew
	on    breakable
	plots []plot
}

func (x faults) measure(t *trial) {
	on, ok := t.shared().(breakable)
	if !ok {
		t.report(measure{what: "not measured: kfake cannot fail; -brokers starts real brokers"})
		return
	}
	leases := []time.Duration{20 * time.Second, 10 * time.Second, 5 * time.Second}
	kinds := on.faults()
	if t.quick {
		leases, kinds = leases[:1], kinds[:2]
	}
	f := newField(t, on, leases)
	found := map[string][]crop{}
	note := func(fault string, victim, controller int, began int64) {
		for _, h := range f.reap(began) {
			name := fmt.Sprintf("lease %v, %s%s", h.lease, role(h.home, victim, controller), fault)
			found[name] = append(found[name], h)
			fmt.Fprintf(t.log, "  %s: %t, back after %s\n", name, h.kept, figures.Show(h.back))
		}
	}
	for round := range t.repeat(choice[int]{1, 10}, 1) {
		for i, fault := range kinds {
			controller := on.controller(t.ctx)
			victim := (round + i) % len(on.addresses())
			if controller >= 0 && round%2 == 0 {
				victim = controller
			}
			note(fault.name, victim, controller, f.suffer(fault, victim, pick(t.bench, x.away)))
		}
		note(rolling, -1, -1, f.roll(kinds[0]))
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t.report(kept(name, found[name])...)
	}
	t.report(judgedLine("", f.book.Judge(), ""), f.control())
}

const rolling = "rolling restart"

// role is what a server was to an election that has this home.
func role(home, victim, controller int) string {
	switch victim {
	case -1: // all
		return ""
	case home:
		return "the bucket's leader "
	case controller:
		return "the controller "
	}
	return "another server "
}

// newField lets all members campaign in all elections, and each member lead some.
func newField(t *trial, on breakable, leases []time.Duration) *field {
	f := &field{crew: t.crew(plan{name: "faults", members: 3, ask: asking.ByTerm}), on: on}
	for home := range on.addresses() {
		bucket := t.unique("faults")
		on.createAt(t.ctx, bucket, home)
		for _, lease := range leases {
			p := plot{fmt.Sprintf("%s-%s", bucket, lease), bucket, lease, home}
			f.plots = append(f.plots, p)
			f.role.Bucket, f.role.Elections, f.role.Lease = p.bucket, []string{p.election}, p.lease
			leader := f.enthrone()
			f.members = append(f.members[1:], leader)
		}
	}
	return f
}

// suffer lets one server fail and return, and returns when that began.
func (f *field) suffer(fault serverFault, victim int, least time.Duration) int64 {
	began, end := machine.Now(), time.Now().Add(least)
	check(fault.begin(victim))
	f.renewed(began)
	f.sleep(time.Until(end))
	check(fault.end(victim))
	f.mend()
	return began
}

// roll restarts all servers in order, each when no copy is behind, and returns when that began.
func (f *field) roll(restart serverFault) int64 {
	began := machine.Now()
	for server := range f.on.addresses() {
		check(restart.begin(server))
		check(restart.end(server))
		f.on.whole(f.ctx)
	}
	f.mend()
	return began
}

// mend waits until no copy is behind, gives each bucket back to its own server, and waits for a
// write of each election after that.
func (f *field) mend() {
	f.on.whole(f.ctx)
	f.on.restore(f.ctx)
	f.renewed(machine.Now())
}

// renewed waits until a write of each election was applied that was sent after a moment.
func (f *field) renewed(after int64) {
	for _, p := range f.plots {
		f.await(0, "a write of "+p.election, func(e entry) bool {
			return e.Election == p.election && e.What == wrote && e.At > after
		})
	}
}

// crop is what became of an election since a moment.
type crop struct {
	plot
	kept bool          // nobody was elected
	gap  time.Duration // the longest from the answer to one write to that to the next
	back time.Duration // from the moment to the answer to the first write sent after it
}

func (f *field) reap(since int64) (found []crop) {
	for _, p := range f.plots {
		h, last := crop{plot: p, kept: true}, int64(0)
		for _, e := range f.journal.since(0) {
			switch {
			case e.Election != p.election:
			case e.What == leads && e.At > since:
				h.kept = false
			case e.What == wrote:
				if e.At > since && h.back == 0 {
					h.back = time.Duration(e.Until - since)
				}
				if last > 0 && e.Until > since {
					h.gap = max(h.gap, time.Duration(e.Until-last))
				}
				last = e.Until
			}
		}
		found = append(found, h)
	}
	return found
}

// kept shows how many elections kept their leaders. All must with a lease of 20 s, and when servers
// are restarted in order.
func kept(name string, crops []crop) []measure {
	n, back, gaps := 0, figures.Dist{}, figures.Dist{}
	for _, h := range crops {
		back, gaps = append(back, h.back), append(gaps, h.gap)
		if h.kept {
			n++
		}
	}
	m := measure{what: name + ": kept", value: fmt.Sprintf("%d of %d; back %s", n, len(crops), back)}
	if crops[0].lease >= 20*time.Second || strings.HasSuffix(name, rolling) {
		m.bound, m.verdict = "all", figures.Within(n == len(crops))
	}
	return []measure{m, timed(name+": gap", gaps, figures.Bound{}, "")}
}

// control pauses leaders whose work goes by memory.
func (f *field) control() measure {
	x := pause(strike{groups: always(1)})
	return controlled(x.control, func() witness.Verdict {
		return x.strikes(f.trial, mode{}, x.beginControl, 1)
	})
}
