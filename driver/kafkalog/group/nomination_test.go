package group

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// calls records the calls of a watch.
type calls struct {
	mu  sync.Mutex
	all []bool
}

func (h *calls) see(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, yes)
}

func (h *calls) check(t *testing.T, what string, want ...bool) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.all, want) {
		t.Errorf("%s: called with %v, want %v", what, h.all, want)
	}
}

// TestNomination: a nomination needs the partition and an answer to a recent request. It ends by
// itself.
func TestNomination(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNominee(10*time.Second, false)
		go n.tell()
		defer n.end()
		var h calls
		defer n.watch(h.see)()
		h.check(t, "at first", false)
		n.answered(time.Now(), true)
		h.check(t, "without the partition", false)
		began := time.Now()
		n.assign(true, began)
		h.check(t, "with it", false, true)
		time.Sleep(7 * time.Second)
		n.answered(began.Add(5*time.Second), true)
		time.Sleep(8*time.Second - time.Nanosecond)
		h.check(t, "counted from when it was sent", false, true)
		time.Sleep(time.Nanosecond)
		h.check(t, "over", false, true, false)
		n.answered(time.Now().Add(-10*time.Second), true)
		h.check(t, "by an answer that comes too late", false, true, false)
		n.answered(time.Now(), true)
		h.check(t, "resumed", false, true, false, true)
		n.lose()
		n.answered(time.Now(), true)
		h.check(t, "lost", false, true, false, true, false)
	})
}

// TestOlderAnswerIsIgnored: answers may come out of order.
func TestOlderAnswerIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNominee(10*time.Second, false)
		n.assign(true, time.Now())
		n.answered(time.Now().Add(-9*time.Second), true)
		time.Sleep(9 * time.Second)
		if !n.now() {
			t.Error("an older answer shortened the nomination")
		}
		n.end()
	})
}

// TestGate: a member that is not nominated may lead while its place is confirmed. An answer to a
// member of a group that is about to rebalance does not confirm it. The nominee may always lead.
// The watch is called for each change.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNominee(10*time.Second, true)
		go n.tell()
		defer n.end()
		var h calls
		defer n.watch(h.see)()
		expect := func(what string, may bool, want ...bool) {
			t.Helper()
			h.check(t, what, want...)
			if n.mayLead() != may {
				t.Errorf("%s: may lead: %v", what, !may)
			}
		}
		expect("at first", false, false)
		n.answered(time.Now(), false)
		expect("by a group that is shared out", false, false)
		n.answered(time.Now(), true)
		expect("as a member", true, false, false)
		time.Sleep(5 * time.Second)
		n.answered(time.Now(), false)
		expect("as a member of late", true, false, false)
		time.Sleep(5 * time.Second)
		expect("not confirmed for long", false, false, false, false)
		n.assign(true, time.Now())
		expect("as the nominee", true, false, false, false, true)
		n.lose()
		expect("without a place", false, false, false, false, true, false)
		n.answered(time.Now(), true)
		expect("as a member again", true, false, false, false, true, false, false)
		time.Sleep(10 * time.Second)
		expect("in silence", false, false, false, false, true, false, false, false)
	})
}

// TestWallClock: after a sleep of the machine the nomination is over, although the monotonic clock
// stood still.
func TestWallClock(t *testing.T) {
	since := time.Now()
	slept := time.Unix(0, since.Add(-time.Hour).UnixNano())
	if got := elapsed(slept); got < time.Hour {
		t.Errorf("%v have passed", got)
	}
	if got := elapsed(time.Time{}); got < 100*365*24*time.Hour {
		t.Errorf("never is %v ago", got)
	}
}

// TestWatchesReceiveEachChange: each watch gets every change that concerns it. A stopped watch gets
// no more. A watch that blocks delays nothing else.
func TestWatchesReceiveEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNominee(time.Minute, false)
		var before, late calls
		stopBefore := n.watch(before.see)
		go n.tell()
		block := make(chan struct{})
		var stop func()
		stop = n.watch(func(yes bool) {
			if yes {
				stop()
				<-block
			}
		})
		n.assign(true, time.Now())
		before.check(t, "the first", true)
		n.lose()
		synctest.Wait()
		if n.now() {
			t.Error("a blocked watch delays the end of the nomination")
		}
		close(block)
		before.check(t, "after the block", true, false)
		stopBefore()
		stopBefore()
		n.assign(true, time.Now())
		before.check(t, "after stop", true, false)
		n.end()
		n.watch(late.see)()
		late.check(t, "after the end", false)
	})
}
