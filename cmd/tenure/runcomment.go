//go:build unix

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/clock"
)

// commentator logs two things for which there is no event: the reason why there is no leader yet,
// and that two processes have the same --id.
type commentator struct {
	id    string
	lease time.Duration
	log   *slog.Logger

	waits    bool      // it has logged why there is no leader
	namesake string    // the incarnation of a leader with the same ID
	written  time.Time // when that leader wrote the first record that was seen, by its clock
	warned   bool
}

// comment follows the status of an election until the returned function is called.
func comment(e *tenure.Election, lease time.Duration, log *slog.Logger) (stop func()) {
	c := &commentator{id: e.ID(), lease: lease, log: log}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.follow(ctx, e)
	}()
	return func() { cancel(); <-done }
}

func (c *commentator) follow(ctx context.Context, e *tenure.Election) {
	for ctx.Err() == nil {
		changed := e.Changed()
		s := e.Status()
		c.vacancy(s)
		look, cancel := ctx, func() {}
		if c.suspects(s) { // a renewal does not change the status, so look again soon
			look, cancel = context.WithTimeout(ctx, c.lease/2)
		}
		select {
		case <-changed:
		case <-look.Done():
		}
		cancel()
	}
}

// vacancy logs once why there is no leader, and until when candidates wait.
func (c *commentator) vacancy(s tenure.Status) {
	why := vacancies[s.Record.Kind]
	if why == "" || s.State != tenure.StateCandidate {
		c.waits = c.waits && why != ""
		return
	}
	if c.waits {
		return
	}
	c.waits = true
	lease := max(c.lease, s.Record.Lease)
	until := s.Record.Seen.Add(lease + time.Duration(float64(lease)*clock.System{}.Drift()))
	c.log.Info(why, "lease", lease, "until", until)
}

// vacancies are the kinds of record for which candidates wait, and the reasons.
var vacancies = map[admin.Kind]string{
	admin.Vacant:    "no record shows who led last: candidates wait one lease, since a leader whose record was deleted may still trust its lease",
	admin.Malformed: "the record is malformed: candidates wait for the lease that it shows or may hide, and then claim over it",
}

// suspects reports whether another process may have the same ID, and warns if that process renews
// the record. An earlier run of this candidate leaves such a record too, but does not renew it.
func (c *commentator) suspects(s tenure.Status) bool {
	if c.warned || s.State != tenure.StateCandidate || s.Leader.ID != c.id {
		return false
	}
	if s.Leader.Incarnation != c.namesake {
		c.namesake, c.written = s.Leader.Incarnation, s.Record.Updated
	}
	if s.Record.Updated.Equal(c.written) {
		return true
	}
	c.warned = true
	c.log.Warn("another process has the same --id: give each its own, since logs and hand-overs cannot tell them apart",
		"leader", c.id, "term", s.Leader.Term)
	return false
}
