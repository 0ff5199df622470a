package tenure_test

import (
	"context"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/timing"
)

func TestWorstFailoverIsNotExceeded(t *testing.T) {
	all := scenes{}
	for _, stable := range []time.Duration{0, 5 * time.Second, 9 * time.Second, 14 * time.Second, time.Minute} {
		all[stable.String()] = func(s *scene) {
			change := func(c *tenure.Config) { c.Tuning.PollStable = stable }
			worst := timing.WorstFailover(settings("a", change), s.store)
			for crash := range 40 {
				took := s.failover(change, time.Duration(crash)*371*time.Millisecond)
				if took > worst+time.Second {
					s.Errorf("%v from the last renewal to the next leader, more than %v", took, worst)
				}
			}
		}
	}
	all.play(t, polled)
}

// failover lets a leader die at a time after its election. It returns the time from when the last
// applied renewal was sent to the election of the next leader.
func (s *scene) failover(change set, at time.Duration) time.Duration {
	s.Helper()
	var mu sync.Mutex
	var sent, renewed time.Time
	f, far := s.faulty()
	a, _ := far.over(&hooked{
		Store: f,
		before: func(_ context.Context, op faults.Op, _ string, _ []byte) error {
			mu.Lock()
			defer mu.Unlock()
			if op == faults.Write {
				sent = time.Now()
			}
			return nil
		},
		wrote: func(string) {
			mu.Lock()
			defer mu.Unlock()
			renewed = sent
		},
	}).elect("a", change)
	b := s.run("b", change)
	time.Sleep(time.Minute + at)
	f.Partition()
	mu.Lock()
	last := renewed
	mu.Unlock()
	b.leads(5 * time.Minute)
	took := time.Since(last)
	_ = b.end()
	f.Heal()
	_ = a.end()
	return took
}

// goroutines counts the goroutines of this bubble. The runtime sometimes has others.
func goroutines() int {
	all := make([]byte, 1<<20)
	stacks := string(all[:runtime.Stack(all, true)])
	own := regexp.MustCompile(`synctest bubble \d+]`).FindString(stacks) // the first is the caller
	return strings.Count(stacks, own)
}

func TestObserversEndEachByItself(t *testing.T) {
	play(t, func(s *scene) {
		o := s.new("observer")
		stop, again := o.observe(), o.observe()
		a, _ := s.elect("a")
		time.Sleep(2 * lease)
		if got := o.Status(); got.Leader.ID != "a" || !got.Confirmed {
			s.Errorf("while it observes: %+v", got)
		}
		if e := o.reports(tenure.EventLeader, nil); e.Leader.ID != "a" {
			s.Errorf("the event is %+v", e)
		}
		stop()
		synctest.Wait()
		_ = a.end()
		time.Sleep(2 * lease)
		if got := o.Status(); got.Leader.Exists() {
			s.Errorf("one of two observers has stopped: %+v", got)
		}
		again()
		synctest.Wait()
		s.elect("b")
		time.Sleep(2 * lease)
		if got := o.Status(); got.Leader.Exists() {
			s.Errorf("no observer is left: %+v", got)
		}
	})
}
