package clientgo

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

const lease = 15 * time.Second // the default

// soon is how long an elector needs at most to see that its process is elected, after a release.
const soon = 2 * time.Second

func want(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("the result is %v; want %v", err, target)
	}
}

func TestOperatorsTakeTurns(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil).run()
		l.leads("a", 2*lease)
		first := a.lock.Term().Token()
		b := l.strict("b", nil).run()
		time.Sleep(3 * lease)
		l.leads("a", 0)
		want(t, a.ends(), nil)
		l.leads("b", soon)
		if err := b.lock.Term().Err(); err != nil || b.lock.Term().Token() <= first {
			t.Errorf("the token is %d after %d, and the term says %v", b.lock.Term().Token(), first, err)
		}
		want(t, b.ends(), nil)
		if !l.released() {
			t.Error("the last leader did not release")
		}
	})
}

// TestCutLeaderStopsInTime cuts leaders off at each moment between two renewals. An elector that is
// deaf does not get the context of Run: then Election.StopWithin must cover its own settings.
func TestCutLeaderStopsInTime(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		for after := time.Duration(0); after < 6*time.Second; after += 250 * time.Millisecond {
			play(t, func(l *lab) {
				a := l.strict("a", nil)
				if deaf {
					a.runDeaf()
				} else {
					a.run()
				}
				l.leads("a", 2*lease)
				b := l.strict("b", nil).run()
				time.Sleep(lease + after)
				a.line.Partition()
				l.leads("b", 2*lease)
				if told := l.work[0].told; !deaf && !told.Before(l.work[1].begun.Add(-a.stopFor)) {
					t.Errorf("the work was told at %v to stop, and the next began at %v", told, l.work[1].begun)
				}
				want(t, a.ended(), tenure.ErrExpired)
				want(t, b.ends(), nil)
				a.line.Heal()
			})
		}
	}
}

// TestDeafElectorNeedsAllOfStopWithin: with a margin that does not cover the elector's own settings
// there are two leaders. So TestCutLeaderStopsInTime would find that.
func TestDeafElectorNeedsAllOfStopWithin(t *testing.T) {
	overlaps := 0
	for after := time.Duration(0); after < 6*time.Second; after += 250 * time.Millisecond {
		play(t, func(l *lab) {
			// The election knows of the work alone, and the elector has its usual settings.
			a := l.strict("a", func(c *Config) {
				c.Election.Lease, c.RetryPeriod, c.RenewDeadline = lease, 2*time.Millisecond, 3*time.Millisecond
			})
			a.lock.times.RetryPeriod, a.lock.times.RenewDeadline = 2*time.Second, 10*time.Second
			a.runDeaf()
			l.leads("a", 2*lease)
			b := l.strict("b", nil).run()
			time.Sleep(lease + after)
			a.line.Partition()
			l.leads("b", 2*lease)
			_ = a.ended()
			want(t, b.ends(), nil)
			a.line.Heal()
			if over, _ := l.overlap(); over > 0 {
				overlaps++
			}
			l.work = nil
		})
	}
	if overlaps == 0 {
		t.Error("no two leaders at once: StopWithin need not cover the elector")
	}
}

// TestFrozenLeaderMayNotAct: after a freeze, the elector still says that it leads. The lock and the
// term do not.
func TestFrozenLeaderMayNotAct(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil).run()
		l.leads("a", 2*lease)
		r := resourcelock.LeaderElectionRecord{HolderIdentity: a.lock.Identity()}
		if err := errors.Join(a.lock.Update(l.Context(), r), a.lock.Create(l.Context(), r), a.lock.Term().Err()); err != nil {
			t.Errorf("a leader may not act: %v", err)
		}
		a.clock.jump(lease - 3*time.Second) // less the margin: the record still names it
		want(t, a.lock.Update(l.Context(), r), tenure.ErrLost)
		want(t, a.lock.Create(l.Context(), r), tenure.ErrLost)
		want(t, a.lock.Term().Err(), tenure.ErrLost)
		if l.last().told != (time.Time{}) {
			t.Error("the elector has noticed it before the lock")
		}
		if now, _, err := a.lock.Get(l.Context()); err != nil || now.HolderIdentity != "" {
			t.Errorf("Get shows the holder %q, %v", now.HolderIdentity, err)
		}
		want(t, a.ended(), tenure.ErrLost)
	})
}

// TestSameIDs: two processes with one ID are two to their electors.
func TestSameIDs(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil).run()
		l.leads("a", 2*lease)
		twin := l.strict("a", nil).run()
		time.Sleep(2 * lease)
		if len(l.work) != 1 {
			t.Error("the other process with this ID leads, too")
		}
		now, _, err := twin.lock.Get(l.Context())
		if err != nil || now.HolderIdentity != a.lock.Identity() || now.HolderIdentity == twin.lock.Identity() {
			t.Errorf("Get of %s shows the holder %q, %v", twin.lock.Identity(), now.HolderIdentity, err)
		}
		_, seen, _ := twin.lock.Get(l.Context())
		if _, later, _ := twin.lock.Get(l.Context()); bytes.Equal(seen, later) {
			t.Error("the elector would count a lease, and try to take over from a leader")
		}
		want(t, errors.Join(a.ends(), twin.ends()), nil)
	})
}

// TestCandidateFromTheFirstGet: a process whose elector has not begun, such as a manager that fills
// its caches, does not keep others from leading.
func TestCandidateFromTheFirstGet(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil)
		begin := make(chan struct{})
		ctx, end := context.WithCancel(l.Context())
		go func() {
			a.result <- a.lock.Run(ctx, func(ctx context.Context) error {
				<-begin
				_, _, err := a.lock.Get(ctx)
				<-ctx.Done()
				return err
			})
		}()
		time.Sleep(5 * lease)
		if s := a.lock.Election().Status(); s.State != tenure.StateIdle {
			t.Errorf("the state is %s before the elector has begun", s.State)
		}
		close(begin)
		for a.lock.Election().Status().State != tenure.StateLeader {
			time.Sleep(time.Second)
		}
		if a.lock.Term() != nil {
			t.Error("there is a term that the elector has not acquired")
		}
		end()
		want(t, a.ended(), nil)
	})
}

// TestTermThatIsNotAcquired: an elector that did not acquire a term in time may acquire the next.
func TestTermThatIsNotAcquired(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil)
		ctx, end := context.WithCancel(l.Context())
		go func() {
			a.result <- a.lock.Run(ctx, func(ctx context.Context) error {
				_, _, err := a.lock.Get(ctx)
				<-ctx.Done()
				return err
			})
		}()
		time.Sleep(3 * lease)
		a.line.Partition()
		time.Sleep(2 * lease)
		a.line.Heal()
		time.Sleep(5 * lease)
		if len(a.result) > 0 {
			t.Fatalf("Run has ended with %v", <-a.result)
		}
		want(t, a.lock.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: a.lock.Identity()}), nil)
		end()
		want(t, a.ended(), nil)
		if !l.released() {
			t.Error("it did not release")
		}
	})
}

func TestHandOverEndsTheWork(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil).run()
		l.leads("a", 2*lease)
		b := l.strict("b", nil).run()
		time.Sleep(lease)
		if err := b.lock.Election().HandOver(l.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		want(t, a.ended(), tenure.ErrHandOver)
		l.leads("b", soon)
		want(t, b.ends(), nil)
	})
}

var errBroken = errors.New("broken")

// TestReleaseOnlyAfterTheWork: no result of start but nil, and no end of a lost term, releases.
func TestReleaseOnlyAfterTheWork(t *testing.T) {
	for why, c := range map[string]struct {
		before  func(*operator) // called while it leads
		work    func(ctx context.Context) error
		release bool
		want    error
	}{
		"the work has stopped":           {nil, func(ctx context.Context) error { <-ctx.Done(); return nil }, true, nil},
		"the work has ended by itself":   {nil, func(context.Context) error { return nil }, true, nil},
		"the work may still run":         {nil, func(ctx context.Context) error { <-ctx.Done(); return errBroken }, false, errBroken},
		"a manager whose elector failed": {func(o *operator) { o.clock.jump(2 * lease) }, func(ctx context.Context) error { <-ctx.Done(); return nil }, false, tenure.ErrLost},
	} {
		t.Run(why, func(t *testing.T) {
			play(t, func(l *lab) {
				a := l.strict("a", nil)
				ctx, end := context.WithCancel(l.Context())
				go func() {
					a.result <- a.lock.Run(ctx, func(ctx context.Context) error {
						for {
							_, _, err := a.lock.Get(ctx)
							if err != nil {
								return err
							}
							if a.lock.Update(ctx, resourcelock.LeaderElectionRecord{HolderIdentity: a.lock.Identity()}) == nil {
								break
							}
							time.Sleep(time.Second)
						}
						if c.before != nil {
							c.before(a)
							_ = a.lock.Term().Err() // it notices the end
						} else {
							time.AfterFunc(time.Second, end)
						}
						return c.work(ctx)
					})
				}()
				result := a.ended()
				end()
				want(t, result, c.want)
				time.Sleep(3 * lease)
				if l.released() != c.release {
					t.Errorf("released: %v; want %v", l.released(), c.release)
				}
			})
		})
	}
}

// frozen is the lock of an elector that stands still, while other goroutines of the process go on.
type frozen struct {
	*Lock
	still atomic.Bool
}

func (f *frozen) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if f.still.Load() {
		return errBroken
	}
	return f.Lock.Update(ctx, r)
}

// TestElectorThatGaveUpIsNotReleased: the elector gives up while the term is valid. Then a manager
// that is ending, too, may return nil although runnables go on. An elector that is asked to stop
// leaves the release to Run.
func TestElectorThatGaveUpIsNotReleased(t *testing.T) {
	for _, gaveUp := range []bool{false, true} {
		play(t, func(l *lab) {
			a := l.strict("a", nil)
			lock := &frozen{Lock: a.lock}
			ctx, end := context.WithCancel(l.Context())
			go func() {
				a.result <- a.lock.Run(ctx, func(ctx context.Context) error {
					le, err := leaderelection.NewLeaderElector(a.elector(lock, a.lock.Times(), func(ctx context.Context) {}))
					if err != nil {
						return err
					}
					le.Run(ctx)
					return nil
				})
			}()
			time.Sleep(3*lease + a.lock.Times().RetryPeriod*3/4) // between two renewals
			if lock.still.Store(gaveUp); gaveUp {
				time.Sleep(2 * a.lock.Times().RenewDeadline)
			}
			if err := a.lock.Term().Err(); err != nil && !gaveUp {
				t.Errorf("the term is over: %v", err)
			}
			end()
			if err := a.ended(); (err != nil) != gaveUp {
				t.Errorf("gave up: %v; the result is %v", gaveUp, err)
			}
			if time.Sleep(time.Second); l.released() == gaveUp {
				t.Errorf("gave up: %v; released: %v", gaveUp, gaveUp)
			}
		})
	}
}

// TestWorkThatVanishesIsNotReleased: OnStartedLeading that ends by runtime.Goexit reports nothing.
func TestWorkThatVanishesIsNotReleased(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil)
		ctx, end := context.WithCancel(l.Context())
		go func() {
			a.result <- a.lock.Elect(ctx, a.elector(nil, Times{}, func(ctx context.Context) {
				<-ctx.Done()
				(&testing.T{}).SkipNow() // calls runtime.Goexit
			}))
		}()
		time.Sleep(3 * lease)
		end()
		want(t, a.ended(), errGone)
		if time.Sleep(lease); l.released() {
			t.Error("it was released")
		}
	})
}

// TestElectAfterALoss: an elector of client-go may campaign again when its work has stopped.
func TestElectAfterALoss(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil).run()
		l.leads("a", 2*lease)
		a.line.Partition()
		want(t, a.ended(), tenure.ErrExpired)
		a.line.Heal()
		a.run()
		l.leads("a", 3*lease)
		want(t, a.ends(), nil)
	})
}

func TestReleaseOnCancelIsRefused(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil)
		c := a.elector(nil, Times{}, func(context.Context) {})
		c.ReleaseOnCancel = true
		over, cancel := context.WithCancel(l.Context())
		cancel()
		want(t, a.lock.Elect(over, c), ErrReleaseOnCancel)
		// A manager of controller-runtime does not show this setting to the lock.
		ctx, end := context.WithCancel(l.Context())
		working := make(chan struct{})
		go func() {
			a.result <- a.lock.Run(ctx, func(ctx context.Context) error {
				c := a.elector(a.lock, a.lock.Times(), func(ctx context.Context) {
					<-ctx.Done()
					<-working
				})
				c.ReleaseOnCancel = true
				le, err := leaderelection.NewLeaderElector(c)
				if err != nil {
					return err
				}
				le.Run(ctx)
				time.Sleep(3 * time.Second)
				if l.released() {
					t.Error("the elector has released while work runs")
				}
				close(working)
				return nil
			})
		}()
		time.Sleep(3 * lease)
		end()
		want(t, a.ended(), ErrReleaseOnCancel)
	})
}

func TestOutsideOfRun(t *testing.T) {
	play(t, func(l *lab) {
		a := l.strict("a", nil)
		check := func() {
			_, _, err := a.lock.Get(l.Context())
			want(t, err, ErrNotRunning)
			want(t, a.lock.Update(l.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: a.lock.Identity()}), ErrNotRunning)
		}
		if a.lock.Term() != nil {
			t.Error("there is a term before Run")
		}
		check()
		a.run()
		l.leads("a", 2*lease)
		want(t, a.lock.Run(l.Context(), nil), tenure.ErrRunning)
		want(t, a.ends(), nil)
		check()
	})
}

func TestSettings(t *testing.T) {
	for why, c := range map[string]struct {
		cfg  Config
		says string // empty: they fit
	}{
		"the defaults":        {Config{}, ""},
		"those of client-go":  {Config{Election: tenure.Config{Lease: time.Minute}, RetryPeriod: 2 * time.Second, RenewDeadline: 10 * time.Second}, ""},
		"a short lease":       {Config{Election: tenure.Config{Lease: 5 * time.Second}}, "StopWithin"},
		"a short deadline":    {Config{RetryPeriod: time.Second}, "RenewDeadline is 1s, and RetryPeriod is 1s: set RenewDeadline to more than 1.2s"},
		"a negative period":   {Config{RetryPeriod: -1}, "RetryPeriod is -1ns"},
		"no time to stop":     {Config{StopWork: -time.Second}, "StopWork is -1s"},
		"StopWithin too low":  {Config{Election: tenure.Config{StopWithin: 2 * time.Second}}, "set StopWithin to 3.6s or more"},
		"StopWithin as asked": {Config{Election: tenure.Config{StopWithin: 3600 * time.Millisecond}}, ""},
		"work that is slow":   {Config{Election: tenure.Config{Lease: time.Minute}, StopWork: 20 * time.Second}, ""},
		"no time to finish":   {Config{Election: tenure.Config{FinishWithin: 2 * time.Second}}, "set FinishWithin to 2.1s or more"},
		"just enough time":    {Config{Election: tenure.Config{FinishWithin: 2100 * time.Millisecond}}, ""},
		"late timers":         {Config{Election: tenure.Config{StopWithin: 3600 * time.Millisecond, Tuning: tenure.Tuning{TimerLateness: time.Second}}}, "set StopWithin to 4.5s or more"},
	} {
		c.cfg.Election.Tuning.Drift = 0.01 // the same on each system
		lock, err := New(memory.New(), name, c.cfg)
		switch {
		case (err == nil) != (c.says == ""), err != nil && !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v; want %q", why, err, c.says)
		case err == nil:
			if _, err := leaderelection.NewLeaderElector(new(lab).elector(lock, lock.Times(), func(context.Context) {})); err != nil {
				t.Errorf("%s: the elector refuses them: %v", why, err)
			}
		}
	}
	if _, err := New(nil, name, Config{}); err == nil {
		t.Error("no store, and no error")
	}
}

// TestElectorOfOtherSettings: Elect starts no elector that does not belong to the lock.
func TestElectorOfOtherSettings(t *testing.T) {
	lock, err := New(memory.New(), name, Config{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(memory.New(), name, Config{})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for says, change := range map[string]func(*leaderelection.LeaderElectionConfig){
		"LeaseDuration of the elector is 1m0s": func(c *leaderelection.LeaderElectionConfig) { c.LeaseDuration = time.Minute },
		"RenewDeadline of the elector is 10s":  func(c *leaderelection.LeaderElectionConfig) { c.RenewDeadline = 10 * time.Second },
		"RetryPeriod of the elector is 2s":     func(c *leaderelection.LeaderElectionConfig) { c.RetryPeriod = 2 * time.Second },
		"Coordinated":                          func(c *leaderelection.LeaderElectionConfig) { c.Coordinated = true },
		"another lock":                         func(c *leaderelection.LeaderElectionConfig) { c.Lock = other },
		"OnStartedLeading":                     func(c *leaderelection.LeaderElectionConfig) { c.Callbacks.OnStartedLeading = nil },
	} {
		c := new(lab).elector(nil, Times{}, func(context.Context) {})
		change(&c)
		if err := lock.Elect(over, c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v; want %q", err, says)
		}
	}
}
