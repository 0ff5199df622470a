//go:build integration

package fencednats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/natsd"
)

// writers is the number of messages that each leader has in flight. It is more than a replicated
// fence accepts.
const writers = 12

// TestOrder: leaders follow one another, and each learns that it is deposed only from the server.
func TestOrder(t *testing.T) {
	t.Parallel()
	newReign(onOne(t), fence, nil).rule(4).check()
}

// TestOrderUnfenced shows that such leaders break the order without a fence.
func TestOrderUnfenced(t *testing.T) {
	t.Parallel()
	if newReign(onOne(t), noFence, nil).rule(3).inOrder() {
		t.Error("the order is kept without the fence: TestOrder proves nothing")
	}
}

// TestClusterOrder does the same on three servers, while a fault hits the server that leads the
// stream.
func TestClusterOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("the soak does it")
	}
	t.Parallel()
	servers := onThree(t, natsd.StartPartible)
	t.Run("calm", func(t *testing.T) { newReign(servers.again(t), fence, nil).rule(3).check() })
	t.Run("another leads", func(t *testing.T) { newReign(servers.again(t), fence, stepDown).rule(3).check() })
	for _, f := range natsd.Falls() {
		t.Run(f.Name, func(t *testing.T) {
			newReign(servers.again(t), fence, func(r *reign) error { return r.fall(f) }).rule(3).check()
		})
	}
	t.Run("unfenced", func(t *testing.T) {
		if newReign(servers.again(t), noFence, nil).rule(3).inOrder() {
			t.Error("the order is kept without the fence: TestClusterOrder proves nothing")
		}
	})
}

// stepDown makes the stream's leader hand over gracefully.
func stepDown(r *reign) error {
	ctx, cancel := wait.Background()
	defer cancel()
	if _, err := r.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+r.name, nil); err != nil {
		return err
	}
	return r.goesOn(ctx)
}

// fall makes a fault of the server that leads the stream, until another one does.
func (r *reign) fall(f natsd.Fall) error {
	ctx, cancel := wait.Background()
	defer cancel()
	leader, err := r.cluster.Leader(ctx, r.name)
	if err != nil {
		return err
	}
	if err := f.Fall(r.cluster, leader); err != nil {
		return err
	}
	return errors.Join(r.untilAnotherLeads(leader), f.Rise(r.cluster, leader), r.cluster.Whole(ctx, r.name))
}

// untilAnotherLeads asks the servers that can be reached, and waits until some messages are
// answered there.
func (r *reign) untilAnotherLeads(than *natsd.Server) error {
	ctx, cancel := wait.Background()
	defer cancel()
	js := connect(r, r.cluster.Others(than)[0].URL())
	err := wait.Poll(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		stream, err := js.Stream(ctx, r.name)
		if err != nil {
			return err
		}
		if leader := stream.CachedInfo().Cluster.Leader; leader == "" || leader == than.Name() {
			return fmt.Errorf("%q leads", leader)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.goesOn(ctx)
}

// reign is a sequence of leaders. Each of them writes from its election to the end, even beside
// later leaders.
type reign struct {
	*scene
	publisher opens
	happen    func(*reign) error

	mu      sync.Mutex
	results map[entry]error
	// Of the reported messages, by token: how many are stored, and how many have an answer that
	// says whether.
	kept, decided map[uint64]int
}

// opens returns what publishes for a leader.
type opens func(*candidacy, context.Context) (publish func(context.Context, string) error, err error)

func newReign(s *scene, publisher opens, happen func(*reign) error) *reign {
	return &reign{
		scene: s, publisher: publisher, happen: happen,
		results: map[entry]error{}, kept: map[uint64]int{}, decided: map[uint64]int{},
	}
}

func fence(n *candidacy, ctx context.Context) (func(context.Context, string) error, error) {
	p, err := fenced.Open(ctx, n.term, n.js, n.name, n.fenceSubject())
	return func(ctx context.Context, value string) error {
		_, err := p.Publish(ctx, n.message(value))
		return err
	}, err
}

func noFence(n *candidacy, _ context.Context) (func(context.Context, string) error, error) {
	return n.unfenced, nil
}

// rule returns when all leaders have stopped and the servers are well. The faults come while one
// leader follows another.
func (r *reign) rule(leaders int) *reign {
	r.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	leader := r.elect("0", r.way(0))
	r.begin(ctx, &work, leader)
	all := []*candidacy{leader}
	for i := range leaders - 1 {
		r.more("stored messages of", r.kept, leader)
		happened := aside(func() error {
			if r.happen == nil {
				return nil
			}
			return r.happen(r)
		})
		leader = leader.supplant(fmt.Sprint(i+1), r.way(i+1))
		r.begin(ctx, &work, leader)
		must(r, outcomeOf(r, happened))
		r.more("answers to", r.decided, all...) // to the earlier ones, which go on
		all = append(all, leader)
	}
	r.more("stored messages of", r.kept, leader)
	return r
}

// some is the number of messages to wait for, a few for each writer.
const some = 3 * writers

// more waits until each of the leaders has some more counts.
func (r *reign) more(what string, counted map[uint64]int, of ...*candidacy) {
	r.Helper()
	for _, leader := range of {
		token := leader.term.Token()
		goal := r.count(counted, token) + some
		wait.Until(r, fmt.Sprintf("%s term %d", what, token), func() bool { return r.count(counted, token) >= goal })
	}
}

func (r *reign) count(counted map[uint64]int, token uint64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return counted[token]
}

// goesOn waits until some more messages are stored or refused, under any leader. One leader may
// have the fence, and reach the stream only through a server that is paused until then.
func (r *reign) goesOn(ctx context.Context) error {
	sum := func() (n int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, answers := range r.decided {
			n += answers
		}
		return n
	}
	goal := sum() + some
	return wait.Poll(ctx, func(context.Context) error {
		if n := sum(); n < goal {
			return fmt.Errorf("%d messages are answered, want %d", n, goal)
		}
		return nil
	})
}

// begin returns when a leader has published something.
func (r *reign) begin(ctx context.Context, work *sync.WaitGroup, leader *candidacy) {
	r.Helper()
	begun := make(chan struct{})
	work.Go(func() { r.write(ctx, leader, begun) })
	select {
	case <-begun:
	case <-wait.Context(r).Done():
		r.Fatal("a leader cannot publish")
	}
}

// way returns a leader's own connection to the stream. Each goes to another server.
func (r *reign) way(i int) jetstream.JetStream {
	if r.cluster == nil {
		return connect(r, r.url)
	}
	return connect(r, r.cluster.Servers[i%natsd.Members].URL())
}

// write goes on until ctx ends. It closes begun with the first message that was stored.
func (r *reign) write(ctx context.Context, n *candidacy, begun chan struct{}) {
	var all sync.WaitGroup
	first := sync.OnceFunc(func() { close(begun) })
	for w := range writers {
		all.Go(func() {
			var publish func(context.Context, string) error
			for i := 0; ctx.Err() == nil; i++ {
				attempt, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				if publish == nil {
					if p, err := r.publisher(n, attempt); err == nil {
						publish = p
					}
				} else if r.enter(n, fmt.Sprintf("%d/%d", w, i), func(value string) error { return publish(attempt, value) }) {
					first()
				}
				cancel()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	all.Wait()
}

func (r *reign) enter(n *candidacy, value string, publish func(string) error) bool {
	err := publish(value)
	r.mu.Lock()
	defer r.mu.Unlock()
	token := n.term.Token()
	r.results[entry{token, value}] = err
	if err == nil {
		r.kept[token]++
	}
	if err == nil || errors.Is(err, fenced.ErrFenced) {
		r.decided[token]++
	}
	return err == nil
}

func (r *reign) inOrder() bool {
	return slices.IsSortedFunc(r.stored(), func(a, b entry) int { return int(int64(a.token) - int64(b.token)) })
}

// check checks all guarantees.
func (r *reign) check() {
	r.Helper()
	if r.cluster != nil {
		must(r, r.cluster.Whole(wait.Context(r), r.name))
	}
	all, count := r.stored(), map[entry]int{}
	for i, e := range all {
		if count[e]++; i > 0 && e.token < all[i-1].token {
			r.Errorf("message %d of %d is %v, after %v", i, len(all), e, all[i-1])
		}
	}
	stored, refused, unknown := 0, 0, 0
	for e, err := range r.results {
		switch n := count[e]; {
		case n > 1, err == nil && n != 1:
			r.Errorf("%v is there %d times, and its writer got %v", e, n, err)
		case errors.Is(err, fenced.ErrUnknown):
			unknown++
		case err != nil && n > 0:
			r.Errorf("%v is there, and its writer got %v", e, err)
		case err == nil:
			stored++
		default:
			refused++
		}
		delete(count, e)
	}
	if len(count) > 0 {
		r.Errorf("no leader wrote %v", count)
	}
	r.Logf("%d stored, %d refused, %d unknown", stored, refused, unknown)
	if stored == 0 || refused == 0 {
		r.Error("nothing was tried")
	}
}
