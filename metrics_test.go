package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/metrics"
)

// board is a Set whose metrics a test reads by text, such as "tenure_renewals_total job half".
type board struct{ *metrics.Set }

func newBoard() board { return board{metrics.New()} }

// in makes an election record its metrics in the Set.
func (b board) in(c *tenure.Config) { c.Metrics = b.Set }

// all returns each sample, and for a histogram the number of its observations.
func (b board) all() map[string]float64 {
	all := map[string]float64{}
	b.Gather(func(s metrics.Sample) {
		number := s.Number
		if s.Distribution != nil {
			for _, n := range s.Distribution.Counts {
				number += float64(n)
			}
		}
		all[strings.Join(strings.Fields(fmt.Sprint(s.Name, " ", s.Election, " ", s.Value, " ", s.Value2)), " ")] = number
	})
	return all
}

// want compares some samples.
func (b board) want(t *testing.T, when string, wanted map[string]float64) {
	t.Helper()
	all := b.all()
	for name, number := range wanted {
		if got, ok := all[name]; !ok || got != number {
			t.Errorf("%s: %s is %v (there: %v), want %v", when, name, got, ok, number)
		}
	}
}

func TestMetricsExistBeforeTheFirstEvent(t *testing.T) {
	b := newBoard()
	e := mustNew(t, memory.New(), "a", b.in)
	all := b.all()
	for name, number := range all {
		switch name {
		case "tenure_lease_seconds job", "tenure_margin_seconds job", "tenure_elections idle":
			if number == 0 {
				t.Errorf("%s is 0", name)
			}
		default:
			if number != 0 {
				t.Errorf("%s is %v", name, number)
			}
		}
	}
	series := 0
	for name := range all {
		if strings.Contains(name, " job") {
			series++
		}
	}
	if series != 18 {
		t.Errorf("an election has %d series: correct the number in package metrics and docs/observe.md", series)
	}
	runtime.KeepAlive(e)
}

// A term is won, renewed, and released.
func TestMetricsOfATerm(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		b, other := newBoard(), newBoard()
		a, term := elect(t, store, "a", b.in)
		f := start(t, mustNew(t, store, "f", other.in), holdOn)
		time.Sleep(10*lease + lease/6)
		b.want(t, "leading", map[string]float64{
			"tenure_leading job": 1, "leader_election_master_status job": 1, "tenure_term job": float64(term.Token()),
			"tenure_renewals_total job half": 30, "tenure_renewals_total job quarter": 0, "tenure_renewals_total job less": 0,
			"tenure_elections leading": 1, "tenure_elections idle": 0, "tenure_lease_seconds job": 15,
			"tenure_leaderless_seconds_total job": 0, "tenure_unhealthy job": 0,
		})
		other.want(t, "following", map[string]float64{
			"tenure_leading job": 0, "tenure_term job": float64(term.Token()), "tenure_elections following": 1,
			"tenure_leaderless_seconds_total job": 0,
		})
		if err := a.end(t); err != nil {
			t.Fatal(err)
		}
		next := within(t, time.Minute, f.won, "term of the follower")
		b.want(t, "after the release", map[string]float64{
			"tenure_leading job": 0, "tenure_terms_ended_total job released": 1, "tenure_elections idle": 1, "tenure_overdue job": 0,
		})
		other.want(t, "elected", map[string]float64{"tenure_leading job": 1, "tenure_term job": float64(next.Token())})
	})
}

// A term that ends because a member asked for it counts by itself.
func TestMetricsOfAHandOver(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		b := newBoard()
		elect(t, store, "a", b.in)
		f := mustNew(t, store, "f", func(*tenure.Config) {})
		next := start(t, f, holdOn)
		time.Sleep(lease)
		handOver(t, f, "")
		within(t, time.Minute, next.won, "term of the follower")
		b.want(t, "after the hand-over", map[string]float64{
			"tenure_terms_ended_total job handed-over": 1, "tenure_terms_ended_total job released": 0,
		})
	})
}

// If the gauge fell during a vacancy, it would look like two changes of leader.
func TestMetricsKeepTheTermDuringAVacancy(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		b := newBoard()
		o := mustNew(t, store, "observer", b.in)
		defer o.Observe()()
		a, term := elect(t, store, "a", nil)
		time.Sleep(2 * lease)
		_ = a.end(t)
		time.Sleep(2 * lease)
		b.want(t, "after the only leader", map[string]float64{"tenure_term job": float64(term.Token()), "tenure_elections leaderless": 1})
	})
}

func TestMetricsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newBoard(), &away{Store: memory.New()}
		a, _ := elect(t, store, "a", b.in)
		store.be(errors.New("out of order"))
		time.Sleep(9 * time.Second) // it missed the renewals from 5 s on
		store.be(nil)
		time.Sleep(4 * time.Second)
		b.want(t, "after a short outage", map[string]float64{
			"tenure_leading job": 1, "tenure_renewals_total job half": 0, "tenure_renewals_total job quarter": 1,
			"tenure_leaderless_seconds_total job": 0,
		})
		failed := b.all()["tenure_store_calls_total write failed"]
		if failed == 0 {
			t.Error("no write has failed")
		}
		store.be(errors.New("out of order"))
		time.Sleep(2 * lease)
		all := b.all()
		if all["tenure_leaderless_seconds_total job"] < lease.Seconds()/2 || all["tenure_elections leaderless"] != 1 {
			t.Errorf("in an outage: %v s without a leader", all["tenure_leaderless_seconds_total job"])
		}
		b.want(t, "in an outage", map[string]float64{
			"tenure_leading job": 0, "tenure_terms_ended_total job expired": 1, "tenure_unhealthy job": 1,
		})
		store.be(nil)
		within(t, 3*lease, a.won, "second term")
		before := b.all()["tenure_leaderless_seconds_total job"]
		time.Sleep(lease)
		b.want(t, "after it", map[string]float64{
			"tenure_leading job": 1, "tenure_unhealthy job": 0, "tenure_leaderless_seconds_total job": before,
		})
		if n := b.all()["tenure_store_call_duration_seconds write"]; n <= failed {
			t.Errorf("the time of %v writes is known", n)
		}
	})
}

func TestMetricsOfAlarmsAndOverdueWork(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		b := newBoard()
		stuck := make(chan struct{})
		a := start(t, mustNew(t, store, "a", func(c *tenure.Config) { b.in(c); c.FinishWithin = time.Second }),
			func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); <-stuck; return nil })
		within(t, time.Minute, a.won, "term")
		store.Delete(key)
		time.Sleep(lease)
		b.want(t, "after a deletion", map[string]float64{
			"tenure_alarms_total job history": 1, "tenure_alarms_total job record": 0, "tenure_terms_ended_total job deposed": 1,
			"tenure_overdue job": 1, "tenure_leading job": 0,
		})
		close(stuck)
		within(t, 3*lease, a.won, "second term")
		b.want(t, "afterwards", map[string]float64{"tenure_overdue job": 0, "tenure_leading job": 1})
		store.Put(key, []byte("not ours"))
		time.Sleep(lease)
		b.want(t, "after other bytes", map[string]float64{
			"tenure_alarms_total job record": 1, "tenure_terms_ended_total job deposed": 2, "tenure_elections leaderless": 1,
		})
	})
}

func TestMetricsOfWorkThatOverruns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, stuck := newBoard(), make(chan struct{})
		a := start(t, mustNew(t, memory.New(), "a", func(c *tenure.Config) { b.in(c); c.FinishWithin = time.Second }),
			func(context.Context, *tenure.Term) error { <-stuck; return nil })
		within(t, time.Minute, a.won, "term")
		a.stop()
		time.Sleep(2 * time.Second)
		b.want(t, "overrun", map[string]float64{"tenure_terms_ended_total job overrun": 1, "tenure_overdue job": 1, "tenure_unhealthy job": 1})
		close(stuck)
		within(t, time.Minute, a.done, "end")
		b.want(t, "at last", map[string]float64{"tenure_terms_ended_total job overrun": 1, "tenure_terms_ended_total job released": 0, "tenure_overdue job": 0})
	})
}

func TestMetricsOfDroppedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, slow := newBoard(), make(chan struct{})
		e := mustNew(t, memory.New(), "a", func(c *tenure.Config) { b.in(c); c.OnEvent = func(tenure.Event) { <-slow } })
		for range 600 { // each causes at least two events
			term := campaign(t, e)
			_ = term.Resign(t.Context())
		}
		close(slow)
		if n := b.all()["tenure_events_dropped_total"]; n == 0 {
			t.Error("no event was dropped")
		}
		b.want(t, "after many terms", map[string]float64{"tenure_terms_ended_total job released": 600})
	})
}

func TestMetricsOfAStandbyWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard()
		store, _ := led(t)
		standby := &readable{Store: store}
		standby.forbidden.Store(true)
		start(t, mustNew(t, standby, "f", b.in), holdOn)
		time.Sleep(2 * lease)
		b.want(t, "without the right to write", map[string]float64{"tenure_unhealthy job": 1, "tenure_elections following": 1})
	})
}

// Elections with one name count together. An election that was garbage collected has no series.
func TestMetricsOfElectionsThatComeAndGo(t *testing.T) {
	b, store := newBoard(), memory.New()
	kept := mustNew(t, store, "a", b.in)
	func() {
		other := mustNew(t, store, "a", b.in)
		another, err := tenure.New(store, "gone", settings("a", b.in))
		if err != nil {
			t.Fatal(err)
		}
		b.want(t, "both", map[string]float64{"tenure_elections idle": 3, "tenure_leading gone": 0})
		for _, e := range []*tenure.Election{other, another} {
			term := campaign(t, e)
			_ = term.Resign(t.Context())
		}
	}()
	for there := true; there; { // until the test's own time limit
		runtime.GC()
		all := b.all()
		_, there = all["tenure_leading gone"]
		there = there || all["tenure_elections idle"] != 1
	}
	b.want(t, "the other is gone", map[string]float64{"tenure_terms_ended_total job released": 1})
	runtime.KeepAlive(kept)
}

func TestMetricsInSummary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := board{metrics.NewSummary()}
		g := mustNewGroup(t, memory.New(), "a", b.in)
		ctx, stop := context.WithCancel(t.Context())
		all := g.elections(1000)
		ends := g.joinAll(ctx, all[:900], &termCounter{})
		time.Sleep(lease)
		b.want(t, "900 of 1,000", map[string]float64{
			"tenure_leading": 900, "tenure_elections leading": 900, "tenure_elections idle": 100, "tenure_terms_ended_total released": 0,
		})
		if n := len(b.all()); n > 50 {
			t.Errorf("%d series", n)
		}
		stop()
		for _, ended := range ends {
			within(t, time.Minute, ended, "end")
		}
		b.want(t, "after the end", map[string]float64{"tenure_leading": 0, "tenure_terms_ended_total released": 900})
		runtime.KeepAlive(all)
	})
}

// BenchmarkScrape measures reading and writing all metrics, without an adapter.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := metrics.New()
			g, err := tenure.NewGroup(memory.New(), tenure.Config{Metrics: set})
			if err != nil {
				b.Fatal(err)
			}
			all := make([]*tenure.Election, n)
			for i := range all {
				if all[i], err = g.Election(fmt.Sprint(i), nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := set.WriteText(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			runtime.KeepAlive(all)
		})
	}
}
