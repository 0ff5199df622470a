package tenure_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
)

// runAll starts a candidate for each ID.
func (s *scene) runAll(ids string, change ...set) map[string]*process {
	all := map[string]*process{}
	for id := range strings.FieldsSeq(ids) {
		all[id] = s.run(id, change...)
	}
	return all
}

func TestHandOver(t *testing.T) {
	scenes{
		"it goes to the named successor": func(s *scene) {
			a, _ := s.elect("a")
			others := s.runAll("b c d e")
			time.Sleep(2 * lease)
			others["b"].handOver("d")
			others["d"].leads(2 * lease)
			if got := a.sees("d"); got.State != tenure.StateCandidate {
				s.Errorf("a is %s", got.State)
			}
		},
		"by the leader itself": func(s *scene) {
			a, term := s.elect("a")
			a.handOver("")
			s.asked(term, tenure.ErrHandOver)
			term = a.leads() // there is no other candidate
			_ = a.end()
			s.asked(term, tenure.ErrShutdown)
		},
		"without a leader it fails": func(s *scene) {
			s.is("HandOver", s.new("a").HandOver(s.Context(), ""), tenure.ErrNoLeader)
		},
		"an error names its election once": func(s *scene) {
			_, far := s.faulty(faults.Plan{Chances: faults.Chances{faults.Fail: 1}})
			err := far.new("a").HandOver(s.Context(), "")
			s.is("HandOver", err, faults.ErrInjected)
			if strings.Count(err.Error(), "tenure:") != 1 {
				s.Error(err)
			}
		},
		"it gives up on a silent store": func(s *scene) {
			f, far := s.faulty()
			f.Partition()
			began := time.Now()
			s.is("HandOver", far.new("a").HandOver(context.Background(), ""), context.DeadlineExceeded)
			if took := time.Since(began); took > 3*lease {
				s.Errorf("it took %v", took)
			}
		},
		"a malformed term is not overwritten": func(s *scene) {
			version := s.put(tooHigh, uint64(lastTerm), 1)
			s.is("HandOver", s.new("b").HandOver(s.Context(), ""), damage(driver.Malformed))
			if e := s.read(); e.Version != version {
				s.Errorf("the store holds %s", e.Value)
			}
		},
		// A process that names its own ID means itself, not a leader that has the same ID by
		// mistake.
		"to a namesake of the leader": func(s *scene) {
			s.elect("a")
			second := s.run("a")
			time.Sleep(lease)
			second.handOver("a")
			second.leads(2 * lease) // it reads once in about a lease
		},
		// A process that is stopped between its read and its write must not write over that
		// version: the store may have begun its history again during the stop.
		"no request is made after a pause": func(s *scene) {
			s.elect("a")
			states := map[driver.Version]bool{}
			stop := true
			s.over(&hooked{Store: s.store, read: func(e *driver.Entry) {
				states[e.Version] = true
				if stop {
					stop = false
					time.Sleep(lease / 2)
				}
			}}).new("operator").handOver("")
			if len(states) != 2 {
				s.Errorf("it has read %d states, and is to read again after a pause", len(states))
			}
		},
		// The request whose answer is lost has moved leadership when it is repeated.
		"a lost answer moves leadership once": func(s *scene) {
			s.elect("a")
			b := s.run("b")
			time.Sleep(2 * lease)
			var term *tenure.Term
			s.over(&hooked{Store: s.store, before: func(ctx context.Context, op faults.Op, key string, value []byte) error {
				if op != faults.Write || term != nil {
					return nil
				}
				if _, err := s.store.CompareAndSwap(ctx, key, s.read().Version, value); err != nil {
					s.Fatal(err)
				}
				term = b.leads(2 * lease)
				return faults.ErrInjected
			}}).new("operator").handOver("")
			time.Sleep(2 * lease)
			s.holds(term)
		},
	}.play(t)
}

// If the named candidate already leads, a hand-over would end its term for no reason.
func TestHandOverToTheLeaderChangesNothing(t *testing.T) {
	all := scenes{}
	for _, asks := range []string{"a", "b"} {
		all["asked by "+asks] = func(s *scene) {
			a, term := s.elect("a")
			by := map[string]*process{"a": a, "b": s.run("b")}[asks]
			time.Sleep(lease + time.Second) // between two renewals
			before := s.read()
			by.handOver("a")
			if after := s.read(); after.Version != before.Version {
				s.Errorf("the store holds %s", after.Value)
			}
			time.Sleep(10 * lease)
			s.holds(term)
		}
	}
	all.play(t)
}

// A request would remove the mark, so members that have not seen it would not wait.
func TestHandOverWaitsWhileTheRecordIsUnproven(t *testing.T) {
	all := scenes{}
	for name, c := range map[string]struct {
		alive, successor bool
		within           time.Duration
		want             string
	}{
		"leader renews":             {true, false, time.Hour, ""},
		"leader is cut off":         {false, false, time.Hour, "has not renewed"},
		"another candidate follows": {false, true, time.Hour, ""},
		"caller does not wait":      {false, false, lease / 3, "has not renewed"},
	} {
		all[name] = func(s *scene) {
			var marked, over string
			suspicious := s.over(&hooked{
				Store: s.store,
				read:  func(e *driver.Entry) { e.Unproven = string(e.Version) == marked },
				before: func(_ context.Context, op faults.Op, _ string, value []byte) error {
					if op == faults.Write && string(s.read().Version) == marked && bytes.Contains(value, []byte(`"request"`)) {
						over = string(value)
					}
					return nil
				},
			})
			line, far := suspicious.faulty()
			far.elect("a")
			if c.successor {
				s.run("b", func(c *tenure.Config) { c.Tuning.Poll, c.Tuning.PollStable = time.Second, time.Second })
				time.Sleep(2*lease + lease/5) // so b's wait is over before the operator's
			}
			marked = string(s.read().Version)
			if !c.alive {
				line.Partition()
			}
			operator := suspicious.new("operator", func(c *tenure.Config) {
				// The commands of operators have such settings.
				c.Lease, c.Tuning.Renew = lease/3, 500*time.Millisecond
			})
			ctx, cancel := context.WithTimeout(s.Context(), c.within)
			defer cancel()
			err := operator.HandOver(ctx, "")
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || over != "" {
				s.Errorf("HandOver returned %v, and wrote %q over the marked record", err, over)
			}
			if e := s.read(); c.successor && !bytes.Contains(e.Value, []byte(`"leaderID":"b"`)) {
				s.Errorf("then the store holds %s", e.Value)
			}
		}
	}
	all.play(t, polled)
}

// offered is an election with a leader a, candidates b and c, and an operator who takes no part.
type offered struct {
	*scene
	by   map[string]*process
	term *tenure.Term
}

func offers(test func(*offered)) func(*scene) {
	return func(s *scene) {
		a, term := s.elect("a")
		o := &offered{s, s.runAll("b c"), term}
		o.by["a"], o.by["operator"] = a, s.new("operator")
		time.Sleep(2 * lease)
		test(o)
	}
}

// unmoved checks that a has led all the time, and that its record holds no request.
func (o *offered) unmoved() {
	o.Helper()
	o.holds(o.term)
	if e := o.read(); bytes.Contains(e.Value, []byte(`"request"`)) {
		o.Errorf("the store holds %s", e.Value)
	}
}

func TestOffers(t *testing.T) {
	all := scenes{
		// The leader names the operator, not the candidate that has accepted.
		"an accepted one moves the leadership": offers(func(o *offered) {
			o.by["operator"].handOver("c")
			o.by["c"].leads(2 * lease) // it reads once in a lease
			o.asked(o.term, tenure.ErrHandOver)
			if why := context.Cause(o.term.Context()); !strings.Contains(why.Error(), "operator") {
				o.Errorf("a left because of %v", why)
			}
		}),
		"force needs no acceptance": offers(func(o *offered) {
			o.is("ForceHandOver", o.by["operator"].ForceHandOver(o.Context(), "bb"), nil)
			o.asked(o.term, tenure.ErrHandOver)
		}),
		"a candidate with precedence does not overwrite one": offers(func(o *offered) {
			first := o.run("first", priority(1))
			time.Sleep(2*lease - 2*time.Second) // it will soon ask
			o.by["operator"].handOver("bb")
			time.Sleep(lease)
			o.holds(o.term)
			first.leads(14 * lease) // it asks once in ten leases
		}),
		// A candidate that accepts too late finds the offer gone, and asks for nothing.
		"a void one is not accepted": offers(func(o *offered) {
			o.over(&hooked{Store: o.store, before: func(_ context.Context, op faults.Op, _ string, _ []byte) error {
				if op == faults.Write && bytes.Contains(o.read().Value, []byte(`"offer":true`)) {
					return errors.New("no answer")
				}
				return nil
			}}).run("late")
			time.Sleep(2 * lease)
			o.by["operator"].handOver("late")
			time.Sleep(4 * lease)
			o.unmoved()
		}),
	}
	// A name that nobody has does not empty the seat, not even if the leader itself offers it.
	for _, by := range []string{"a", "operator"} {
		all["to nobody, by "+by] = offers(func(o *offered) {
			o.by[by].handOver("bb")
			time.Sleep(3 * lease) // two leases from when the leader saw it, and a renewal
			o.unmoved()
		})
	}
	// A mistyped name can be corrected at once.
	for name, later := range map[string]func(*tenure.Election, context.Context, string) error{
		"another offer": (*tenure.Election).HandOver, "force": (*tenure.Election).ForceHandOver,
	} {
		all["corrected by "+name] = offers(func(o *offered) {
			o.by["operator"].handOver("bb")
			o.is(name, later(o.by["operator"].Election, o.Context(), "b"), nil)
			o.by["b"].leads(2 * lease)
		})
	}
	all.play(t)
}

// A leader that hands over cannot know whether others received its push.
func TestHandOverWithFailingPushes(t *testing.T) {
	for delay := range 8 {
		play(t, func(s *scene) {
			s = s.over(&hooked{
				Store: s.store,
				watch: func(context.Context, string, func(driver.Entry)) (func(), error) { return func() {}, nil },
				able:  func(a *driver.Abilities) { a.Peers = peers{a.Watcher} },
			})
			a, _ := s.elect("a")
			b := s.run("b")
			time.Sleep(2*lease + time.Duration(delay)*900*time.Millisecond)
			b.handOver("b")
			select {
			case <-b.won:
			case <-a.won:
				s.Errorf("delay %d: leadership went back to a", delay)
			case <-time.After(4 * lease):
				s.Errorf("delay %d: no leader", delay)
			}
		}, polled)
	}
}
