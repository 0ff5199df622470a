package dashboard

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/story"
)

// outage is a time in which a store did not answer, or refused all requests.
type outage struct {
	trouble
	From time.Time  `json:"from"`
	To   *time.Time `json:"to,omitempty"` // nil: it goes on
}

const (
	maxOutages = 50
	// checkEvery is the time between two reads that find out whether a store answers: one after an
	// election has reported trouble, and further ones until the store answers.
	checkEvery = 2 * time.Second
	// checkWithin bounds such a read. Where a store pushes, one is also made after a silence of
	// checkEvery. Together that is below 3 s.
	checkWithin = 800 * time.Millisecond
)

// failure is the trouble that an election reports.
type failure struct {
	at    time.Time
	cause error
}

// check finds out whether the store answers after an election has reported trouble. One election
// may fail alone, such as by a missing right. It returns once the store answers.
func (s *source) check(ctx context.Context, first failure) {
	why := first.cause
	for {
		err := s.probe(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			s.back(time.Now())
			return
		case troubleOf(err).Reason != noAnswer: // that may only be the time limit of this read
			why = err
		}
		s.away(first.at, troubleOf(why))
		select {
		case <-time.After(checkEvery):
		case <-s.answers:
			s.back(time.Now())
			return
		case <-ctx.Done():
			return
		}
	}
}

// followTrouble checks the store after an election has reported trouble, at most once in
// checkEvery. A store that pushes is also checked if it has shown nothing for so long.
func (s *source) followTrouble(ctx context.Context) {
	var quiet <-chan time.Time
	for ctx.Err() == nil {
		s.mu.Lock()
		if driver.AbilitiesOf(s.store).Pushes() { // the store itself, not its members
			quiet = time.After(checkEvery)
		}
		s.mu.Unlock()
		select {
		case <-s.answers:
			continue
		case <-quiet:
			s.check(ctx, failure{time.Now(), driver.ErrNoAnswer})
			continue
		case first := <-s.troubles:
			s.check(ctx, first)
			drain(s.troubles) // what was reported meanwhile is covered
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(checkEvery):
		case <-ctx.Done():
		}
	}
}

// probe reads the election that the store has shown last, since it may be read for certain.
func (s *source) probe(ctx context.Context) error {
	all := s.all()
	if len(all) == 0 {
		return nil
	}
	last := slices.MaxFunc(all, func(a, b *election) int { return a.seenAt().Compare(b.seenAt()) })
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	drain(s.answers)
	_, err := last.store.Read(ctx, last.key.Name)
	return err
}

// away records that the store is away.
func (s *source) away(since time.Time, why trouble) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.outage()
	switch {
	case o == nil:
		s.outages = bounded(append(s.outages, outage{trouble: why, From: since}), maxOutages)
	case o.Reason == why.Reason:
		return
	default:
		o.trouble = why
	}
	s.keepOutage()
}

// back records that the store answers again, if it was away. The elections are listed again at
// once.
func (s *source) back(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.outage()
	if o == nil {
		return
	}
	o.To, s.problem = &now, trouble{}
	s.keepOutage()
	offer(s.relist, struct{}{})
}

// offer sends to a channel, unless something waits there already.
func offer[T any](c chan<- T, one T) {
	select {
	case c <- one:
	default:
	}
}

// drain takes all that waits in a channel.
func drain[T any](c <-chan T) {
	for len(c) > 0 {
		<-c
	}
}

// keepOutage saves the last outage, and reports the change. It runs under the lock.
func (s *source) keepOutage() {
	last := s.outages[len(s.outages)-1]
	s.history.add(line{Source: s.Name, Outage: &last})
	s.hub.changed(key{Source: s.Name})
}

// outage returns the present outage, or nil. It runs under the lock.
func (s *source) outage() *outage {
	if n := len(s.outages); n > 0 && s.outages[n-1].To == nil {
		return &s.outages[n-1]
	}
	return nil
}

// isAway reports whether the store is away.
func (s *source) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outage() != nil
}

// outagesSince returns a copy of the outages that end after the given time.
func (s *source) outagesSince(after time.Time) []outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(clone(s.outages), func(o outage) bool { return o.To != nil && o.To.Before(after) })
}

// covers reports whether the event only tells of an outage of the store. A read that began in the
// outage may fail up to a lease after it.
func covers(all []outage, e *event) bool {
	return e.What == string(story.Trouble) && slices.ContainsFunc(all, func(o outage) bool {
		return !e.At.Before(o.From) && (o.To == nil || !e.At.After(o.To.Add(lease)))
	})
}

// trouble is why a store does not answer: in plain words, and the whole error.
type trouble struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

const noAnswer = "the store does not answer"

// plainly are the reasons in plain words, the most telling first.
var plainly = []struct {
	err    error
	reason string
}{
	{driver.ErrDenied, "the store refuses access: a right or a password is missing, wrong or revoked"},
	{driver.ErrUnfit, "the store is unfit for elections: see its settings"},
	{driver.ErrPoolBusy, "all connections of the dashboard to the store are in use"},
	{driver.ErrConnecting, "there is no connection to the store"},
	{driver.ErrNoAnswer, noAnswer},
	{context.DeadlineExceeded, noAnswer},
}

// troubleOf describes an error of a store.
func troubleOf(err error) trouble {
	t := trouble{"the store cannot be reached or refuses requests", err.Error()}
	for _, p := range plainly {
		if errors.Is(err, p.err) {
			t.Reason = p.reason
			break
		}
	}
	return t
}
