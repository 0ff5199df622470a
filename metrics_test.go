package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
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
	e, err := tenure.New(memory.New(), key, settings("a", b.in))
	if err != nil {
		t.Fatal(err)
	}
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

func TestMetrics(t *testing.T) {
	scenes{
		"a term is won, renewed and released": func(s *scene) {
			b, other := newBoard(), newBoard()
			a, term := s.elect("a", b.in)
			f := s.run("f", other.in)
			time.Sleep(10*lease + lease/6)
			b.want(s.T, "leading", map[string]float64{
				"tenure_leading job": 1, "leader_election_master_status job": 1, "tenure_term job": float64(term.Token()),
				"tenure_renewals_total job half": 30, "tenure_renewals_total job quarter": 0, "tenure_renewals_total job less": 0,
				"tenure_elections leading": 1, "tenure_elections idle": 0, "tenure_lease_seconds job": 15,
				"tenure_leaderless_seconds_total job": 0, "tenure_unhealthy job": 0,
			})
			other.want(s.T, "following", map[string]float64{
				"tenure_leading job": 0, "tenure_term job": float64(term.Token()), "tenure_elections following": 1,
				"tenure_leaderless_seconds_total job": 0,
			})
			s.is("Run", a.end(), nil)
			next := f.leads()
			b.want(s.T, "after the release", map[string]float64{
				"tenure_leading job": 0, "tenure_terms_ended_total job released": 1, "tenure_elections idle": 1, "tenure_overdue job": 0,
			})
			other.want(s.T, "elected", map[string]float64{"tenure_leading job": 1, "tenure_term job": float64(next.Token())})
		},
		// A term that ends because a member asked for it counts by itself.
		"a hand-over": func(s *scene) {
			b := newBoard()
			s.elect("a", b.in)
			f := s.run("f")
			time.Sleep(lease)
			f.handOver("")
			f.leads()
			b.want(s.T, "after the hand-over", map[string]float64{
				"tenure_terms_ended_total job handed-over": 1, "tenure_terms_ended_total job released": 0,
			})
		},
		// If the gauge fell during a vacancy, it would look like two changes of leader.
		"the term is kept during a vacancy": func(s *scene) {
			b := newBoard()
			defer s.new("observer", b.in).observe()()
			a, term := s.elect("a")
			time.Sleep(2 * lease)
			_ = a.end()
			time.Sleep(2 * lease)
			b.want(s.T, "after the only leader", map[string]float64{"tenure_term job": float64(term.Token()), "tenure_elections leaderless": 1})
		},
		"an outage": func(s *scene) {
			b, store := newBoard(), newAway()
			a, _ := s.over(store).elect("a", b.in)
			store.be(errors.New("out of order"))
			time.Sleep(9 * time.Second) // it missed the renewals from 5 s on
			store.be(nil)
			time.Sleep(4 * time.Second)
			b.want(s.T, "after a short outage", map[string]float64{
				"tenure_leading job": 1, "tenure_renewals_total job half": 0, "tenure_renewals_total job quarter": 1,
				"tenure_leaderless_seconds_total job": 0,
			})
			failed := b.all()["tenure_store_calls_total write failed"]
			if failed == 0 {
				s.Error("no write has failed")
			}
			store.be(errors.New("out of order"))
			time.Sleep(2 * lease)
			all := b.all()
			if all["tenure_leaderless_seconds_total job"] < lease.Seconds()/2 || all["tenure_elections leaderless"] != 1 {
				s.Errorf("in an outage: %v s without a leader", all["tenure_leaderless_seconds_total job"])
			}
			b.want(s.T, "in an outage", map[string]float64{
				"tenure_leading job": 0, "tenure_terms_ended_total job expired": 1, "tenure_unhealthy job": 1,
			})
			store.be(nil)
			a.leads(3 * lease)
			before := b.all()["tenure_leaderless_seconds_total job"]
			time.Sleep(lease)
			b.want(s.T, "after it", map[string]float64{
				"tenure_leading job": 1, "tenure_unhealthy job": 0, "tenure_leaderless_seconds_total job": before,
			})
			if n := b.all()["tenure_store_call_duration_seconds write"]; n <= failed {
				s.Errorf("the time of %v writes is known", n)
			}
		},
		"alarms and overdue work": func(s *scene) {
			b, stuck := newBoard(), make(chan struct{})
			a := s.new("a", b.in, finishWithin(time.Second)).start(func(context.Context, *tenure.Term) error { <-stuck; return nil })
			a.leads()
			s.store.Delete(key)
			time.Sleep(lease)
			b.want(s.T, "after a deletion", map[string]float64{
				"tenure_alarms_total job history": 1, "tenure_alarms_total job record": 0, "tenure_terms_ended_total job deposed": 1,
				"tenure_overdue job": 1, "tenure_leading job": 0,
			})
			stuck <- struct{}{}
			a.leads(3 * lease)
			b.want(s.T, "afterwards", map[string]float64{"tenure_overdue job": 0, "tenure_leading job": 1})
			s.put("not ours")
			time.Sleep(lease)
			b.want(s.T, "after other bytes", map[string]float64{
				"tenure_alarms_total job record": 1, "tenure_terms_ended_total job deposed": 2, "tenure_elections leaderless": 1,
			})
			close(stuck)
		},
		"work that overruns": func(s *scene) {
			b, stuck := newBoard(), make(chan struct{})
			a := s.new("a", b.in, finishWithin(time.Second)).start(func(context.Context, *tenure.Term) error { <-stuck; return nil })
			a.leads()
			a.stop()
			time.Sleep(2 * time.Second)
			b.want(s.T, "overrun", map[string]float64{
				"tenure_terms_ended_total job overrun": 1, "tenure_overdue job": 1, "tenure_unhealthy job": 1,
			})
			close(stuck)
			s.is("Run", a.result(), nil)
			b.want(s.T, "at last", map[string]float64{
				"tenure_terms_ended_total job overrun": 1, "tenure_terms_ended_total job released": 0, "tenure_overdue job": 0,
			})
		},
		"dropped events": func(s *scene) {
			b, slow := newBoard(), make(chan struct{})
			e := s.new("a", b.in, onEvent(func(tenure.Event) { <-slow }))
			for range 600 { // each causes at least two events
				s.resign(e.campaign())
			}
			close(slow)
			if n := b.all()["tenure_events_dropped_total"]; n == 0 {
				s.Error("no event was dropped")
			}
			b.want(s.T, "after many terms", map[string]float64{"tenure_terms_ended_total job released": 600})
		},
		"a summary": func(s *scene) {
			b := board{metrics.NewSummary()}
			g := s.group("a", b.in)
			all := g.many(1000)
			end := g.joinAll(all[:900], &termCounter{})
			time.Sleep(lease)
			b.want(s.T, "900 of 1,000", map[string]float64{
				"tenure_leading": 900, "tenure_elections leading": 900, "tenure_elections idle": 100, "tenure_terms_ended_total released": 0,
			})
			if n := len(b.all()); n > 50 {
				s.Errorf("%d series", n)
			}
			end()
			b.want(s.T, "after the end", map[string]float64{"tenure_leading": 0, "tenure_terms_ended_total released": 900})
			runtime.KeepAlive(all)
		},
	}.play(t)
}

func TestMetricsOfAStandbyWithoutRights(t *testing.T) {
	play(t, func(s *scene) {
		b := newBoard()
		s.elect("leader")
		s.over(newReadable(s.store, errNoRight)).run("f", b.in)
		time.Sleep(2 * lease)
		b.want(s.T, "without the right to write", map[string]float64{"tenure_unhealthy job": 1, "tenure_elections following": 1})
	}, watched)
}

// Elections with one name count together. An election that was garbage collected has no series.
func TestMetricsOfElectionsThatComeAndGo(t *testing.T) {
	b, store := newBoard(), memory.New()
	open := func(name string) *tenure.Election {
		e, err := tenure.New(store, name, settings("a", b.in))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	kept := open(key)
	func() {
		other, another := open(key), open("gone")
		b.want(t, "both", map[string]float64{"tenure_elections idle": 3, "tenure_leading gone": 0})
		for _, e := range []*tenure.Election{other, another} {
			term, err := e.Campaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
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
				if all[i], err = g.Election(fmt.Sprint(i)); err != nil {
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

// A store of driver.Peers keeps the function of an election, and not the election.
func TestPeersDoNotKeepElections(t *testing.T) {
	kept := &keeper{Watcher: memory.New()}
	store := &hooked{Store: memory.New(), able: func(a *driver.Abilities) { a.Watcher, a.Peers = kept, kept }}
	alive := func() weak.Pointer[tenure.Election] {
		e, err := tenure.New(store, key, tenure.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(e)
	}()
	for alive.Value() != nil { // until the test's own time limit
		runtime.GC()
	}
	if left := kept.left(1); left != 0 {
		t.Errorf("the lease is valid for %v", left)
	}
}

// keeper is a Peers that keeps what it gets.
type keeper struct {
	driver.Watcher
	left func(term uint64) time.Duration
}

func (k *keeper) Incarnation(left func(term uint64) time.Duration) string {
	k.left = left
	return ""
}
