package main

import (
	"context"
	"fmt"
	"time"

	acts "github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// replicaField is one cast that campaigns in buckets led by each of the servers, for an election with each of some leases.
type replicaField struct {
	*field
}

// replicaField hires the members. They are dismissed by dismiss, whatever happens.
func (b *bench) replicaField(leases ...time.Duration) (*replicaField, error) {
	f := &replicaField{&field{cast: &cast{}}}
	r, err := b.parted()
	if err != nil {
		return f, err
	}
	f.cast, err = b.replicaCast(r, "r3-faults", natsd.Members, command{Do: start, Ask: asking.ByTerm})
	if err != nil {
		return f, err
	}
	for home := range r.Servers {
		for _, lease := range leases {
			bucket, err := r.newBucket(b)
			if err != nil {
				return f, err
			}
			f.plots = append(f.plots, plot{fmt.Sprintf("%s-%d-%s", f.name, home, lease), bucket, lease, home})
		}
	}
	if err := f.restore(); err != nil {
		return f, err
	}
	return f, f.sow()
}

// sow has all members campaign in all elections, and each in turn lead one first.
func (f *replicaField) sow() error {
	for _, p := range f.plots {
		f.role.Bucket, f.role.Elections, f.role.Lease = p.topic, []string{p.election}, p.lease
		leader := f.members[0]
		if err := f.lead(leader); err != nil {
			return err
		}
		f.role.Spread = 0
		if err := f.join(f.journal.mark(), f.members[1:]...); err != nil {
			return err
		}
		f.members = append(f.members[1:], leader)
	}
	return nil
}

// each does something for the stream of each election.
func (f *replicaField) each(do func(ctx context.Context, stream string, home *natsd.Server) error) error {
	for _, p := range f.plots {
		if err := do(f.b.ctx, "KV_"+p.topic, f.on.Servers[p.home]); err != nil {
			return err
		}
	}
	return nil
}

// whole waits until no copy of a bucket is behind.
func (f *replicaField) whole() error {
	return f.each(func(ctx context.Context, stream string, _ *natsd.Server) error { return f.on.Whole(ctx, stream) })
}

// restore has each bucket led by its own server.
func (f *replicaField) restore() error {
	return f.each(func(ctx context.Context, stream string, home *natsd.Server) error {
		return f.on.Lead(ctx, stream, home)
	})
}

// mend waits until no copy is behind, gives each bucket back to its own server, and waits for a write of each election after that.
func (f *replicaField) mend() error {
	if err := f.whole(); err != nil {
		return err
	}
	if err := f.restore(); err != nil {
		return err
	}
	return f.renewed(machine.Now())
}

// control has a server freeze under a leader that knows no other and whose work goes by memory.
func (f *replicaField) control() (measure, error) {
	return controlled(byMemory, 1, func() (acts.Verdict, error) {
		bucket, err := f.on.newBucket(f.b)
		if err != nil {
			return acts.Verdict{}, err
		}
		c := &cast{b: f.b, name: "r3-control", journal: newJournal(), ready: watchSetUp, on: f.on, urls: f.on.URLs(),
			role: command{Do: start, Bucket: bucket, Elections: []string{"r3-control"}, Lease: 2 * time.Second, Ask: asking.ByMemory}}
		defer c.dismiss()
		if err := c.hire(natsd.Members); err != nil {
			return acts.Verdict{}, err
		}
		err = c.freezeUnder(c.members[0], f.on.Servers[0], "KV_"+bucket)
		return c.book.Judge(), err
	})
}

// freezeUnder has a member lead that knows one server alone, and freezes that until another member leads.
func (c *cast) freezeUnder(leader *member, s *natsd.Server, stream string) error {
	if _, err := c.enthrone(); err != nil {
		return err
	}
	if err := c.on.Lead(c.b.ctx, stream, c.on.Others(s)[0]); err != nil {
		return err
	}
	mark := c.reign(leader)
	if err := s.Pause(); err != nil {
		return err
	}
	_, _, err := c.successor(mark, leader)
	c.b.sleep(c.role.Lease / 4)
	if resumed := s.Resume(); err == nil {
		err = resumed
	}
	c.b.sleep(settle)
	return err
}
