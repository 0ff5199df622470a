package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// field is one cast that campaigns in a topic of each real broker, for an election with each of some leases.
type field struct {
	*cast
	kafka *brokers
	plots []plot
}

// plot is one election.
type plot struct {
	election, topic string // or bucket
	lease           time.Duration
	home            int // the broker or server that leads its topic or bucket unless it is down
}

// field hires the members. They are dismissed by dismiss, whatever happens.
func (b *bench) field(name string, leases ...time.Duration) (*field, error) {
	kafka, err := b.realBrokers()
	if err != nil {
		return &field{cast: &cast{}}, err
	}
	c, err := b.stage(scene{name: name, members: 3, kafka: kafka, ask: asking.ByTerm})
	f := &field{cast: c, kafka: kafka}
	if err != nil {
		return f, err
	}
	for home := 1; home <= len(kafka.addresses); home++ {
		topic, err := kafka.newTopicAt(b.ctx, home)
		if err != nil {
			return f, err
		}
		for _, lease := range leases {
			f.plots = append(f.plots, plot{fmt.Sprintf("%s-%d-%s", name, home, lease), topic, lease, home})
		}
	}
	return f, f.sow()
}

// sow has all members campaign in all elections, and the first lead them.
func (f *field) sow() error {
	for _, p := range f.plots {
		f.role.Bucket, f.role.Elections, f.role.Lease = p.topic, []string{p.election}, p.lease
		if _, err := f.enthrone(); err != nil {
			return err
		}
	}
	return nil
}

// crop is what became of an election since a moment.
type crop struct {
	plot
	kept bool          // nobody was elected
	gap  time.Duration // the longest from the answer to one write to that to the next
	back time.Duration // from the moment to the answer to the first write sent after it
}

func (f *field) reap(since int64) []crop {
	all, _ := f.journal.since(0)
	var found []crop
	for _, p := range f.plots {
		h := crop{plot: p, kept: true}
		var last int64
		for _, e := range all {
			switch {
			case e.Election != p.election:
			case e.What == leads && e.At > since:
				h.kept = false
			case e.What == wrote:
				h.see(e, since, last)
				last = e.Until
			}
		}
		found = append(found, h)
	}
	return found
}

// see takes account of a write after the last one.
func (h *crop) see(e entry, since, last int64) {
	if e.At > since && h.back == 0 {
		h.back = time.Duration(e.Until - since)
	}
	if last > 0 && e.Until > since {
		h.gap = max(h.gap, time.Duration(e.Until-last))
	}
}

// keptOf is the line on how many of some elections kept their leaders; what a lease below 20 s keeps is only told.
func keptOf(what string, lease time.Duration, crops []crop) measure {
	kept, back := 0, figures.Dist{}
	for _, h := range crops {
		back = append(back, h.back)
		if h.kept {
			kept++
		}
	}
	m := measure{what: what, value: fmt.Sprintf("%d of %d; back %s", kept, len(crops), back)}
	if lease >= 20*time.Second {
		m.bound, m.verdict = "all", figures.Within(kept == len(crops))
	}
	return m
}

// explain logs what the writes of an election came to that lost its leader, from the last one before a moment on.
func (f *field) explain(h crop, since int64) {
	if h.kept {
		return
	}
	all, _ := f.journal.since(0)
	var told []entry
	for _, e := range all {
		switch {
		case e.Election != h.election:
		case e.What == wrote && e.Until < since:
			told = []entry{e}
		case e.What == wrote, e.What == strayed, e.What == lost, e.What == leads:
			told = append(told, e)
		}
	}
	at := func(stamp int64) string { return figures.Show(time.Duration(stamp - since)) }
	for _, e := range told[:min(len(told), 20)] {
		fmt.Fprintf(f.b.log, "    %s %s %s %s to %s: %s\n", e.Election, e.who, e.What, at(e.At), at(max(e.At, e.Until)), e.Error)
	}
}

// renewed waits until a write of each election was applied that was sent after a moment.
func (f *field) renewed(after int64) error {
	for _, p := range f.plots {
		_, err := f.journal.await(f.b.ctx, 0, "a write of "+p.election, func(e entry) bool {
			return e.Election == p.election && e.What == wrote && e.At > after
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// judge is the line on whether two led at once; n is how many runs there were.
func (f *field) judge(n int) measure {
	v := f.book.Judge()
	return measure{what: "answers of yes after the next was elected", value: overlap(v, n), bound: "0", verdict: figures.Safe(v.Safe())}
}

// mend brings all brokers back, waits until all copies are complete, gives each topic back to its own broker, and waits for a
// write of each election after that.
func (f *field) mend() error {
	if err := f.kafka.Heal(f.b.ctx); err != nil {
		return err
	}
	if err := f.kafka.restore(f.b.ctx); err != nil {
		return err
	}
	return f.renewed(machine.Now())
}
