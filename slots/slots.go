package slots

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/nomination"
)

// Member is this process's part in the slots of one name. It must be made by New. Its methods may
// be called concurrently.
type Member struct {
	name   string
	cfg    Config
	base   tenure.Config // the settings of the slots' elections
	full   tenure.Config // the same with all defaults
	group  *tenure.Group
	slots  []*slot // slot 1 first
	busy   atomic.Bool
	wakeup chan struct{} // capacity 1: there may be something to do

	mu      sync.Mutex
	status  Status
	changed chan struct{} // closed at the next change of status; nil without waiters
	// declined counts the terms in a row that the work has declined, until the next one; pausedAt
	// and pause say when the last one ended and how long this member begins no campaign.
	declined int
	pausedAt time.Duration
	pause    time.Duration
}

// New returns a member of the slots of this name. It starts nothing and does not call the store. A
// *tenure.ConfigError lists the problems of the config. Those that tenure.New also finds in
// Config.Election are listed when there are no others. If store is nil, the error reports only
// that.
func New(store driver.Store, name string, cfg Config) (*Member, error) {
	if store == nil {
		return nil, errors.New("slots: the store is nil")
	}
	cfg = cfg.withDefaults()
	full := cfg.Election.WithDefaults()
	if err := invalid(name, cfg.validate(name, &full)); err != nil {
		return nil, err
	}
	m := &Member{name: name, cfg: cfg, wakeup: make(chan struct{}, 1)}
	cfg.Election.ID = full.ID
	m.base = cfg.election(func(election string) nomination.Nominator { return m.gateOf(election) })
	m.full = m.base.WithDefaults()
	var err error
	m.group, err = tenure.NewGroup(store, m.base)
	if wrong, ok := errors.AsType[*tenure.ConfigError](err); ok {
		for i := range wrong.Fields {
			wrong.Fields[i].Field = "Election." + wrong.Fields[i].Field
		}
		return nil, invalid(name, wrong.Fields)
	}
	if err != nil {
		return nil, err
	}
	for n := 1; n <= cfg.Slots; n++ {
		if err := m.addSlot(n); err != nil {
			return nil, err
		}
	}
	m.status = m.snapshot()
	return m, nil
}

func (m *Member) addSlot(number int) (err error) {
	s := &slot{number: number, gate: &gate{clock: m.full.Clock, within: m.full.Lease}}
	m.slots = append(m.slots, s)
	if s.election, err = m.group.Election(Election(m.name, number)); err == nil {
		s.self = s.election.Member().Incarnation
	}
	return err
}

// gateOf is called while the group makes an election, which is that of the last slot.
func (m *Member) gateOf(string) nomination.Nominator { return m.slots[len(m.slots)-1].gate }

// Election returns the name of the election of a slot: the name of the slots, "/slots/" and the
// number. Its record is the key of this name in the store.
func Election(name string, number int) string { return name + infix + strconv.Itoa(number) }

const infix = "/slots/"

// Number returns the number of the slot of a term, from 1; 0 if the term is not that of a slot.
func Number(t *tenure.Term) int {
	name := t.Election()
	i := strings.LastIndex(name, infix)
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(name[i+len(infix):])
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Name returns the name of the slots.
func (m *Member) Name() string { return m.name }

// ID returns the ID of this member.
func (m *Member) ID() string { return m.full.ID }

// ElectionOf returns this member's part in the election of a slot, from 1 to Config.Slots; nil for
// any other number. Use it for its Status, or to ask its leader to hand over, also to a certain
// member. Do not campaign in it, because Run does.
func (m *Member) ElectionOf(number int) *tenure.Election {
	if number < 1 || number > len(m.slots) {
		return nil
	}
	return m.slots[number-1].election
}

// Run takes part until ctx ends. Whenever this member gets a slot, it calls the handler, as
// tenure.Group.Join does. Number gives the slot of the term. The handler is a function of type
// tenure.Lead, which runs in a goroutine until its context ends, or another tenure.Handler. With a
// PerMember above 1, calls for different slots are concurrent.
//
// When the work of a slot ends, the table of tenure.Election.Run says how this member goes on.
// After a hand-over, a lost term or a smaller number of slots it seeks a slot again, the same or
// another. After ErrDecline it seeks none until Tuning.Backoff has passed. Any other work that ends
// unasked ends Run, with its result; then the work of other slots is asked to finish. The cause
// with which work is asked to finish because of a smaller number of slots, or because the lower
// slots could not be read for a lease, is tenure.ErrIneligible.
//
// Run returns when all work has stopped. It returns nil if ctx has ended and the work reported no
// other error; an error that wraps tenure.ErrDenied if the store denies reading a slot and has
// never allowed it; or tenure.ErrRunning if another Run is under way.
func (m *Member) Run(ctx context.Context, handler tenure.Handler) error {
	if !m.busy.CompareAndSwap(false, true) {
		return tenure.ErrRunning
	}
	defer m.busy.Store(false)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &session{m: m, ctx: ctx, cancel: cancel, handler: handler, ended: make(chan end), since: m.now().Mono}
	following := s.follow()
	for ctx.Err() == nil {
		wait := s.review()
		s.wait(wait)
	}
	err := s.finish()
	<-following
	for _, one := range m.slots {
		one.look(m.now(), m.full.Lease)
	}
	m.publish(m.snapshot())
	return err
}

var errEnded = errors.New("the work of a slot has ended")

// wake makes Run check for work.
func (m *Member) wake() {
	select {
	case m.wakeup <- struct{}{}:
	default:
	}
}

// denied is the error of Run if a slot may not be read.
func (m *Member) denied(err error) error { return fmt.Errorf("slots: %q: %w", m.name, err) }
