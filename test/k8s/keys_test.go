package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/k8slease"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/schedule"
	"github.com/tenure-go/tenure/slots"
	"github.com/tenure-go/tenure/test/internal/k8sfake"
)

// cluster is an API server in a bubble.
type cluster struct {
	t       testing.TB
	api     *k8sfake.Server
	network *pipenet.Network
}

func newCluster(t testing.TB) *cluster {
	c := &cluster{t: t, network: new(pipenet.Network)}
	api, stop := serve(t, c.network)
	c.api = api
	t.Cleanup(stop)
	return c
}

// store returns a store over connections of its own.
func (c *cluster) store() *k8slease.Store {
	c.t.Helper()
	s, err := k8slease.New(on(c.network), namespace)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = s.Close() })
	return s
}

// remove deletes the Lease of a key, as kubectl does.
func (c *cluster) remove(_ context.Context, key string) error {
	path := "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases/" + k8slease.Name(key)
	answer := httptest.NewRecorder()
	c.api.ServeHTTP(answer, httptest.NewRequest(http.MethodDelete, path, nil))
	if answer.Code != http.StatusOK && answer.Code != http.StatusNotFound {
		return fmt.Errorf("delete: %d", answer.Code)
	}
	return nil
}

// below is a store whose keys are all below those of an election.
type below struct{ *k8slease.Store }

const prefix = "billing/jobs/"

func (b below) Read(ctx context.Context, key string) (driver.Entry, error) {
	return b.Store.Read(ctx, prefix+key)
}

func (b below) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return b.Store.CompareAndSwap(ctx, prefix+key, prev, value)
}

func (b below) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	return b.Store.Watch(ctx, prefix+key, see)
}

func (b below) CheckKey(key string) error { return b.Store.CheckKey(prefix + key) }

func (b below) CheckRights(ctx context.Context, key string) error {
	return b.Store.CheckRights(ctx, prefix+key)
}

func (b below) Keys(ctx context.Context) (keys []string, err error) {
	all, err := b.Store.Keys(ctx)
	for _, key := range all {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			keys = append(keys, rest)
		}
	}
	return keys, err
}

// TestConformanceWithSlashes: a key with slashes is a cell like any other.
func TestConformanceWithSlashes(t *testing.T) {
	drivertest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
		c := newCluster(t)
		remove := func(ctx context.Context, key string) error { return c.remove(ctx, prefix+key) }
		return drivertest.Harness{
			Store: below{c.store()}, Peer: below{c.store()}, Delete: remove, Purge: remove, Rounds: 5, Watches: 100,
		}
	})
}

// TestSlots: slots are elections in Leases of their own, which are listed under their names.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		leading, tokens := map[int]string{}, map[int]uint64{}
		var members sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			m, err := slots.New(c.store(), "crawl", slots.Config{Slots: 2, Election: tenure.Config{ID: id}})
			if err != nil {
				t.Fatal(err)
			}
			members.Go(func() {
				_ = m.Run(ctx, tenure.Lead(func(ctx context.Context, term *tenure.Term) error {
					n := slots.Number(term)
					mu.Lock()
					if leading[n] != "" || term.Token() <= tokens[n] {
						t.Errorf("%s leads slot %d with token %d, after %q with %d", id, n, term.Token(), leading[n], tokens[n])
					}
					leading[n], tokens[n] = id, term.Token()
					mu.Unlock()
					<-ctx.Done()
					mu.Lock()
					delete(leading, n)
					mu.Unlock()
					return nil
				}))
			})
		}
		leaders := func() int {
			mu.Lock()
			defer mu.Unlock()
			return len(leading)
		}
		for leaders() < 2 {
			time.Sleep(time.Second)
		}
		keys, err := c.store().Keys(ctx)
		if want := []string{"crawl/slots/1", "crawl/slots/2"}; err != nil || !slices.Equal(keys, want) {
			t.Errorf("the keys are %q, %v; want %q", keys, err, want)
		}
		cancel()
		members.Wait()
	})
}

// TestJobs: the state of a job is in a Lease of its own.
func TestJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCluster(t).store()
		ran := make(chan schedule.Tick, 100)
		job := schedule.Every("* * * * *").Named("report").Do(func(_ context.Context, tick schedule.Tick) error {
			ran <- tick
			return nil
		})
		jobs, err := schedule.New(store, name, schedule.Config{}, job)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := lead(ctx, t, store, name, jobs.Lead)
		first, second := <-ran, <-ran
		cancel()
		<-done
		if second.Planned.Sub(first.Planned) != time.Minute {
			t.Errorf("ticks at %v and %v", first.Planned, second.Planned)
		}
		status, err := schedule.Read(t.Context(), store, name, "report")
		if err != nil || len(status.Ticks) < 2 {
			t.Errorf("the status is %+v, %v", status, err)
		}
	})
}

// TestCollision: two keys whose Leases have the same name never share it. The one that was written
// first has it until it is deleted, and the other one is refused with an error that names both.
func TestCollision(t *testing.T) {
	for _, keys := range [][2]string{{"a.jobs.b", "a/jobs/b"}, {"a/jobs/b", "a.jobs.b"}, {"a/jobs.b", "a.jobs/b"}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			one, other := c.store(), c.store()
			owner, refused := keys[0], keys[1]
			version, err := one.CompareAndSwap(t.Context(), owner, "", []byte("first"))
			if err != nil {
				t.Fatal(err)
			}
			pushes := make(chan driver.Entry, 10)
			stop, err := other.Watch(t.Context(), refused, func(e driver.Entry) { pushes <- e })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			read, err := other.Read(t.Context(), refused)
			if err != nil {
				t.Fatal(err)
			}
			for what, e := range map[string]driver.Entry{"read": read, "pushed": <-pushes} {
				if text := string(e.Value); !names(text, keys) || e.Notice == nil || !names(e.Notice.Error(), keys) {
					t.Errorf("%s is %q, with %v", what, text, e.Notice)
				}
			}
			for _, s := range []*k8slease.Store{one, other} { // the first one knows the Lease
				if _, err := s.CompareAndSwap(t.Context(), refused, version, []byte("x")); err == nil || !names(err.Error(), keys) {
					t.Errorf("a write to %s: %v", refused, err)
				}
			}
			if _, err := other.CompareAndSwap(t.Context(), refused, "", []byte("x")); !errors.Is(err, driver.ErrConflict) {
				t.Errorf("the creation of %s: %v", refused, err)
			}
			if all, err := other.Keys(t.Context()); err != nil || !slices.Equal(all, keys[:1]) {
				t.Errorf("the keys are %q, %v", all, err)
			}
			if version, err = one.CompareAndSwap(t.Context(), owner, version, []byte("second")); err != nil {
				t.Fatal(err)
			}
			if e, err := one.Read(t.Context(), owner); err != nil || string(e.Value) != "second" || e.Version != version {
				t.Errorf("%s is %q in version %s, %v", owner, e.Value, e.Version, err)
			}
			if err := c.remove(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			if _, err := other.CompareAndSwap(t.Context(), refused, "", []byte("third")); err != nil {
				t.Errorf("after the deletion: %v", err)
			}
			if e, err := one.Read(t.Context(), owner); err != nil || e.Notice == nil {
				t.Errorf("after the deletion %s is %q, %v", owner, e.Value, err)
			}
		})
	}
}

// names reports whether a text names all keys.
func names(text string, keys [2]string) bool {
	return strings.Contains(text, keys[0]) && strings.Contains(text, keys[1])
}

// TestCollisionOfJobAndElection: an election and a job whose keys have the same Lease say so.
func TestCollisionOfJobAndElection(t *testing.T) {
	keys := [2]string{"a.jobs.b", "a/jobs/b"}
	synctest.Test(t, func(t *testing.T) {
		store := newCluster(t).store()
		ctx, cancel := context.WithCancel(t.Context())
		leads := make(chan struct{})
		election := lead(ctx, t, store, keys[0], func(ctx context.Context, _ *tenure.Term) error {
			close(leads)
			<-ctx.Done()
			return nil
		})
		<-leads
		trouble := make(chan error, 100)
		note := func(e schedule.Event) {
			if e.Kind == schedule.EventTrouble {
				trouble <- e.Err
			}
		}
		job := schedule.Every("* * * * *").Named("b").Do(func(context.Context, schedule.Tick) error {
			t.Error("the job runs")
			return nil
		})
		jobs, err := schedule.New(store, "a", schedule.Config{OnEvent: note}, job)
		if err != nil {
			t.Fatal(err)
		}
		done := lead(ctx, t, store, "a", jobs.Lead)
		if err := <-trouble; !names(err.Error(), keys) {
			t.Errorf("the job says: %v", err)
		}
		if _, err := schedule.Read(ctx, store, "a", "b"); err == nil || !names(err.Error(), keys) {
			t.Errorf("the status of the job is: %v", err)
		}
		cancel()
		<-election
		<-done
	})
	synctest.Test(t, func(t *testing.T) {
		store := newCluster(t).store()
		if _, err := store.CompareAndSwap(t.Context(), keys[1], "", []byte("the state of a job")); err != nil {
			t.Fatal(err)
		}
		alarms := make(chan error, 100)
		e, err := tenure.New(store, keys[0], tenure.Config{OnEvent: func(e tenure.Event) {
			if e.Kind == tenure.EventAlarm && errors.Is(e.Cause, &tenure.StoreError{Kind: driver.Foreign}) {
				alarms <- e.Cause
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.Run(ctx, func(context.Context, *tenure.Term) error {
				t.Error("it leads")
				return nil
			})
		}()
		if err := <-alarms; !names(err.Error(), keys) {
			t.Errorf("the alarm is: %v", err)
		}
		if _, err := admin.Reset(ctx, store, keys[0], 15*time.Second); err == nil || !names(err.Error(), keys) {
			t.Errorf("a reset: %v", err)
		}
		time.Sleep(time.Hour)
		cancel()
		<-done
	})
}

// lead runs an election until its context ends. The channel is closed then.
func lead(ctx context.Context, t *testing.T, store driver.Store, name string, do func(context.Context, *tenure.Term) error) <-chan struct{} {
	t.Helper()
	e, err := tenure.New(store, name, tenure.Config{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, do)
	}()
	return done
}
