package recipes

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

// silent drops the log of a client of Redis.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// lab has two processes over one store, in virtual time.
type lab struct {
	*testing.T
	store *memory.Store
	mu    sync.Mutex
	runs  map[string]int // of jobs, by process
}

// play lets process a do a job, then b after a has ended. Start starts a process and returns its
// end.
func play(t *testing.T, start func(l *lab, id string) (end func())) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, store: memory.New(), runs: map[string]int{}}
		endA := start(l, "a")
		l.waitFor("a")
		endB := start(l, "b")
		time.Sleep(time.Minute)
		if n := l.of("b"); n > 0 {
			t.Errorf("b has done the job %d times while a leads", n)
		}
		endA()
		before := l.of("a")
		l.waitFor("b")
		if l.of("a") > before {
			t.Error("a has done the job after its end")
		}
		endB()
		time.Sleep(time.Minute) // goroutines of the libraries
	})
}

func (l *lab) ran(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[id]++
}

func (l *lab) of(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[id]
}

func (l *lab) waitFor(id string) {
	l.Helper()
	for range 3600 {
		if l.of(id) > 0 {
			return
		}
		time.Sleep(time.Second)
	}
	l.Fatalf("%s does no job", id)
}

func (l *lab) election(id string) *tenure.Election {
	e, err := tenure.New(l.store, "jobs", tenure.Config{ID: id})
	if err != nil {
		l.Fatal(err)
	}
	return e
}

// run campaigns until the returned function is called.
func (l *lab) run(e *tenure.Election, lead tenure.Lead) (end func()) {
	ctx, cancel := context.WithCancel(l.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, lead) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			l.Error(err)
		}
	}
}

func idle(ctx context.Context, _ *tenure.Term) error {
	<-ctx.Done()
	return nil
}

func (l *lab) gocron(id string, option gocron.SchedulerOption) (end func()) {
	s, err := gocron.NewScheduler(option)
	if err != nil {
		l.Fatal(err)
	}
	_, err = s.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(func() { l.ran(id) }), gocron.WithName("job"))
	if err != nil {
		l.Fatal(err)
	}
	s.Start()
	return func() {
		if err := s.Shutdown(); err != nil {
			l.Error(err)
		}
	}
}

func TestGocronElector(t *testing.T) {
	play(t, func(l *lab, id string) func() {
		e := l.election(id)
		leave, stop := l.run(e, idle), l.gocron(id, gocron.WithDistributedElector(Elector{e}))
		return func() { stop(); leave() }
	})
}

// TestGocronLocker: a job does not start while another process runs it.
func TestGocronLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := Locker{memory.New(), "jobs.", tenure.Config{}, 30 * time.Second}
		held, err := locker.Lock(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := locker.Lock(t.Context(), "job"); !errors.Is(err, errHeld) {
			t.Errorf("the second lock: %v", err)
		}
		if other, err := locker.Lock(t.Context(), "other"); err != nil {
			t.Error(err)
		} else if err := other.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := held.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		l := &lab{T: t, runs: map[string]int{}}
		end := l.gocron("a", gocron.WithDistributedLocker(locker))
		l.waitFor("a")
		end()
		time.Sleep(time.Minute)
	})
}

func TestRobfigCron(t *testing.T) {
	play(t, func(l *lab, id string) func() {
		e := l.election(id)
		leave := l.run(e, idle)
		c := cron.New(cron.WithChain(OnLeader(e, time.Second)))
		if _, err := c.AddFunc("@every 1s", func() { l.ran(id) }); err != nil {
			l.Fatal(err)
		}
		c.Start()
		return func() { <-c.Stop().Done(); leave() }
	})
}

// TestAsynq has no Redis: each attempt to enqueue a task fails, and counts.
func TestAsynq(t *testing.T) {
	play(t, func(l *lab, id string) func() {
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:1", MaxRetries: -1, // a name would be looked up outside of the virtual time
			Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no server") },
		})
		leave := l.run(l.election(id), Schedule(func() (*asynq.Scheduler, error) {
			s := asynq.NewSchedulerFromRedisClient(client, &asynq.SchedulerOpts{
				LogLevel: asynq.FatalLevel, PostEnqueueFunc: func(*asynq.TaskInfo, error) { l.ran(id) },
			})
			_, err := s.Register("@every 1s", asynq.NewTask("job", nil))
			return s, err
		}))
		return func() { leave(); _ = client.Close() }
	})
}

func TestCollector(t *testing.T) {
	play(t, func(l *lab, id string) func() {
		x := &LeaderElector{Election: l.election(id)}
		// Receivers find the extension by this method.
		var found interface {
			SetCallBackFuncs(func(context.Context), func())
		} = x
		stopped := 0
		add := func() { found.SetCallBackFuncs(func(context.Context) { l.ran(id) }, func() { stopped++ }) }
		add()
		if err := x.Start(l.Context(), componenttest.NewNopHost()); err != nil {
			l.Fatal(err)
		}
		return func() {
			before := l.of(id)
			if add(); l.of(id) != before+1 {
				l.Error("a receiver that comes late does not start on the leader")
			}
			if err := x.Shutdown(l.Context()); err != nil || stopped != 2 {
				l.Errorf("%d receivers stopped: %v", stopped, err)
			}
		}
	})
}
