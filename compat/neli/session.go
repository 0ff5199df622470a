package neli

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// session is one membership of the group, with the election that follows it. There is one after the
// other: it ends when there are no more Pulses.
type session struct {
	n      *elector
	member member
	ctx    context.Context // ends when the session is to
	end    context.CancelCauseFunc
	term   *tenure.Term // the last one, for when it was abandoned
}

// live is the life of an instance. A fatal error is kept until Close is called.
func (n *elector) live() {
	defer n.ended()
	var store driver.Store
	err := n.persist("open the log", func(ctx context.Context) (err error) {
		store, err = n.ground.open(ctx)
		return err
	})
	for err == nil && n.awake() {
		err = n.session(store)
	}
	if n.ctx.Err() == nil {
		n.log.Error("neli: this instance can never lead", "error", err)
		n.change(func() { n.fatal = err })
	}
	<-n.ctx.Done()
}

// awake returns true at the next Pulse, and false when the instance is closed.
func (n *elector) awake() bool {
	defer n.change(func() { n.dormant = false })
	n.change(func() { n.dormant = true })
	for n.ctx.Err() == nil {
		changed := n.news()
		if n.silent() < n.props.silence {
			return true
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
		}
	}
	return false
}

// session takes part until there are no more Pulses or the instance is closed, both without an
// error.
func (n *elector) session(store driver.Store) error {
	s := &session{n: n}
	s.ctx, s.end = context.WithCancelCause(n.ctx)
	defer s.end(nil)
	err := n.persist("join the group", func(ctx context.Context) (err error) {
		s.member, err = n.ground.join(ctx)
		return err
	})
	if err != nil {
		return err
	}
	leave := sync.OnceFunc(s.leave)
	defer leave()
	defer context.AfterFunc(s.ctx, leave)() // at once, while the program is finishing
	return s.campaign(store)
}

func (s *session) leave() {
	if err := s.member.Close(); err != nil {
		s.n.log.Warn("neli: left the group with an error", "error", err)
	}
}

func (s *session) campaign(store driver.Store) error {
	group, err := tenure.NewGroup(store, s.settings())
	if err != nil {
		return err
	}
	e, err := group.Election(s.n.cfg.LeaderGroupID, s.member)
	if err != nil {
		return err
	}
	done, err := group.Join(s.ctx, e, tenure.Lead(s.lead))
	if err != nil {
		return err
	}
	err = s.attend(done)
	if errors.Is(err, tenure.ErrAbandoned) {
		return s.settle()
	}
	if cause := context.Cause(s.ctx); err == nil && s.n.ctx.Err() == nil && !errors.Is(cause, errSilent) {
		err = cause
	}
	return err
}

// attend ends the session when there are no more Pulses. It returns when the election has ended.
func (s *session) attend(done <-chan error) error {
	silence := time.NewTimer(s.n.props.silence)
	defer silence.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-silence.C:
			left := s.n.props.silence - s.n.silent()
			if left > 0 {
				silence.Reset(left)
				continue
			}
			s.n.log.Warn("neli: leaving the group: nobody calls Pulse", "max.poll.interval", s.n.props.silence)
			s.end(errSilent) // and the election with it
		}
	}
}
