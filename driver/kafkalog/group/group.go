package group

import (
	"context"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Group is one member of a consumer group. All methods may be called concurrently.
type Group struct {
	cfg         Config
	client      *kgo.Client
	coordinator *coordinator
	nomination  *nomination

	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	work   sync.WaitGroup
	closed sync.Once
	gone   error // the result of Close

	rejoin chan struct{} // capacity 1: the group must be joined again
	hurry  chan struct{} // capacity 1: see Vacant
	// closed when the coordinator has first accepted this process as a future member
	met chan struct{}

	mu      sync.Mutex
	member  identity
	joining bool      // a join is on its way, so an old generation is no surprise
	trouble error     // the last request's
	vacant  time.Time // since when there is no leader; zero while there is one
}

var (
	_ driver.VacancyListener = (*Group)(nil)
	_ driver.Gate            = (*Group)(nil)
)

// identity is the coordinator's name for this member.
type identity struct {
	id         string
	generation int32
}

var nobody = identity{generation: -1}

func newGroup(client *kgo.Client, cfg Config) *Group {
	g := &Group{
		cfg:         cfg,
		client:      client,
		coordinator: &coordinator{client: client, group: cfg.Name, timeout: cfg.timeout()},
		nomination:  newNomination(cfg.SessionTimeout-cfg.margin(), cfg.BesideGoNELI),
		rejoin:      make(chan struct{}, 1),
		hurry:       make(chan struct{}, 1),
		met:         make(chan struct{}),
		member:      nobody,
	}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// Name returns the consumer group's name.
func (g *Group) Name() string { return g.cfg.Name }

// Nominate calls see once soon, and then after each change of Nominated or MayLead, until stop is
// called. The argument is the result of Nominated. Calls do not overlap. A see that blocks delays
// the see functions of other calls of Nominate, and nothing else: neither the group nor the end of
// the nomination waits for it.
func (g *Group) Nominate(see func(nominated bool)) (stop func()) { return g.nomination.watch(see) }

// Nominated reports whether this member is the nominee, by the clock at the time of the question.
func (g *Group) Nominated() bool { return g.nomination.now() }

// MayLead implements driver.Gate: with Config.BesideGoNELI a candidate that is not the nominee may
// lead only while the coordinator confirms that it is a member; without, always.
func (g *Group) MayLead() bool { return g.nomination.mayLead() }

// Err returns the present error of the membership, or nil. The member goes on trying after any
// error, unless it is a fenced static member.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trouble
}

// Vacant implements driver.VacancyListener. An election calls it if this Group is its Nominator.
// While there is no leader, and for two sessions at most, this member sends a heartbeat at once,
// after 5 ms, and then after pauses that double up to an eighth of Heartbeat. Without it a member
// notices within a Heartbeat that another one left, and the next owner is named when all have
// noticed.
func (g *Group) Vacant(vacant bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vacant = time.Time{}
	if vacant {
		g.vacant = time.Now()
		raise(g.hurry)
	}
}

// Close ends the nomination, leaves the group so that the next owner is named at once, and closes
// the client. It takes as long as one request may take: a tenth of SessionTimeout, at least 200 ms
// and at most 2 s. A leader by this nomination should finish first; closing the group ends no
// lease. A static member does not leave.
//
// It returns an error if the coordinator was not reached; the group then waits for the
// SessionTimeout. It may be called more than once.
func (g *Group) Close() error {
	g.closed.Do(func() {
		g.nomination.end()
		g.stop()
		g.work.Wait()
		g.gone = g.leave()
		g.client.Close()
	})
	return g.gone
}

func (g *Group) now() identity {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.member
}

// become sets the identity; with another one, or none, the place in the group and its partition are
// lost.
func (g *Group) become(m identity) {
	g.mu.Lock()
	kept := m.id == g.member.id
	g.member = m
	g.mu.Unlock()
	if !kept {
		g.nomination.lose()
	}
}

// note keeps an error, and logs it once.
func (g *Group) note(doing string, err error) {
	if g.ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	before := g.trouble
	g.trouble = err
	g.mu.Unlock()
	switch {
	case err != nil && (before == nil || before.Error() != err.Error()):
		g.cfg.Logger.Warn("the consumer group does not work", "doing", doing, "error", err)
	case err == nil && before != nil:
		g.cfg.Logger.Info("the consumer group works again")
	}
}

// raise sets a flag that is a channel.
func raise(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// sleep ends early with the context.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
