package recipes

import (
	"context"
	"errors"
	"net"
	"slices"
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

func (l *lab) gocron(task gocron.Task, options ...gocron.SchedulerOption) (end func()) {
	s, err := gocron.NewScheduler(options...)
	if err != nil {
		l.Fatal(err)
	}
	if _, err = s.NewJob(gocron.DurationJob(time.Second), task, gocron.WithName("job")); err != nil {
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
		e := &Elector{Election: l.election(id)}
		task := e.Task(func(context.Context) error { l.ran(id); return nil })
		leave, stop := l.run(e.Election, e.Lead), l.gocron(task, gocron.WithDistributedElector(e))
		return func() { stop(); leave() }
	})
}

// TestLeadWaitsForJobs ends a leader while its job runs, and its scheduler goes on: another process
// may run the job when this one has ended.
func TestLeadWaitsForJobs(t *testing.T) {
	const long = 5 * time.Second // less than FinishWithin
	for library, start := range map[string]func(l *lab, e *tenure.Election, job func()) (lead tenure.Lead, stop func()){
		"robfig/cron": func(l *lab, e *tenure.Election, job func()) (tenure.Lead, func()) {
			wrap, lead := OnLeader(e, time.Second)
			return lead, l.cron(wrap, job)
		},
		"gocron": func(l *lab, e *tenure.Election, job func()) (tenure.Lead, func()) {
			x := &Elector{Election: e}
			task := x.Task(func(context.Context) error { job(); return nil })
			return x.Lead, l.gocron(task, gocron.WithDistributedElector(x))
		},
	} {
		t.Run(library, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lab{T: t, store: memory.New(), runs: map[string]int{}}
				running := map[string]int{}
				process := func(id string) (leave, stop func()) {
					e := l.election(id)
					lead, stop := start(l, e, func() {
						l.mu.Lock()
						l.runs[id]++
						running[id]++
						if running["a"] > 0 && running["b"] > 0 {
							t.Error("both run the job at once")
						}
						l.mu.Unlock()
						time.Sleep(long)
						l.mu.Lock()
						running[id]--
						l.mu.Unlock()
					})
					return l.run(e, lead), stop
				}
				leave, stop := process("a")
				l.waitFor("a")
				leaveB, stopB := process("b")
				time.Sleep(time.Minute + time.Second/2) // between two ticks
				before := l.of("a")
				leave()
				l.waitFor("b")
				if l.of("a") > before {
					t.Error("a has begun the job after its end")
				}
				leaveB()
				time.Sleep(time.Minute) // virtual time stands still if gocron waits for a job
				stop()
				stopB()
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestGocronLocker: a job does not start while another process runs it.
func TestGocronLocker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locker := Locker{memory.New(), "jobs.", tenure.Config{}, 30 * time.Second, time.Second}
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
		locker.Splay = 0
		if _, err := locker.Lock(t.Context(), "third"); err == nil {
			t.Error("it accepts that ticks are not apart, which needs clocks without a difference")
		}
		time.Sleep(time.Minute) // the locks are kept
	})
}

// TestTickRunsOnce: two processes, which begin each tick apart, run it once.
func TestTickRunsOnce(t *testing.T) {
	const ticks, every, splay = 30, time.Minute, 4 * time.Second
	synctest.Test(t, func(t *testing.T) {
		locker := Locker{memory.New(), "jobs.", tenure.Config{}, 20 * time.Second, splay}
		l := &lab{T: t, runs: map[string]int{}}
		for tick := range ticks {
			begin := time.Now()
			var both sync.WaitGroup
			for i, id := range []string{"a", "b"} {
				both.Go(func() {
					if (tick+i)%2 == 0 { // each is the first in turn
						time.Sleep(time.Duration(tick) * splay / ticks)
					}
					if held, err := locker.Lock(t.Context(), "job"); err == nil {
						l.ran(id)
						time.Sleep(time.Millisecond)
						if err := held.Unlock(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			both.Wait()
			if n := l.of("a") + l.of("b"); n != tick+1 {
				t.Fatalf("%d runs in %d ticks", n, tick+1)
			}
			time.Sleep(every - time.Since(begin))
		}
	})
}

// TestGocronLocks: a scheduler asks the Locker.
func TestGocronLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, runs: map[string]int{}}
		locker := Locker{memory.New(), "jobs.", tenure.Config{}, 30 * time.Second, time.Second}
		end := l.gocron(gocron.NewTask(func() { l.ran("a") }), gocron.WithDistributedLocker(locker))
		l.waitFor("a")
		end()
		time.Sleep(time.Minute)
	})
}

// cron starts a scheduler of robfig/cron.
func (l *lab) cron(wrap cron.JobWrapper, job func()) (stop func()) {
	c := cron.New(cron.WithChain(wrap))
	if _, err := c.AddFunc("@every 1s", job); err != nil {
		l.Fatal(err)
	}
	c.Start()
	return func() { <-c.Stop().Done() }
}

func TestRobfigCron(t *testing.T) {
	play(t, func(l *lab, id string) func() {
		e := l.election(id)
		wrap, lead := OnLeader(e, time.Second)
		leave, stop := l.run(e, lead), l.cron(wrap, func() { l.ran(id) })
		return func() { stop(); leave() }
	})
}

// TestAsynq has no Redis: each attempt to enqueue a task fails, and counts.
func TestAsynq(t *testing.T) {
	play(t, func(l *lab, id string) func() {
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:1", MaxRetries: -1, // a name would be looked up in real time
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

// TestCollectorStartsNothingAfterTheEnd: the term ends while a receiver starts.
func TestCollectorStartsNothingAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lab{T: t, store: memory.New(), runs: map[string]int{}}
		x := &LeaderElector{Election: l.election("a")}
		var stopped []string
		x.SetCallBackFuncs(func(ctx context.Context) {
			x.end()
			<-ctx.Done()
		}, func() { stopped = append(stopped, "first") })
		late := func(context.Context) { t.Error("a receiver starts after the end") }
		x.SetCallBackFuncs(late, func() { stopped = append(stopped, "second") })
		if err := x.Start(t.Context(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
		if err := <-x.done; err != nil || !slices.Equal(stopped, []string{"first"}) {
			t.Errorf("stopped: %v, %v", stopped, err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		x.leading = over // it has ended, and lead has not noticed that yet
		x.SetCallBackFuncs(late, nil)
	})
}
