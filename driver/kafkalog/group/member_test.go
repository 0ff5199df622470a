package group

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestConfig(t *testing.T) {
	c, err := Config{}.settle()
	if err != nil || c.Topic != c.Name+".neli" || c.SessionTimeout != 15*time.Second || c.Heartbeat != 3*time.Second {
		t.Errorf("the defaults are %+v, %v", c, err)
	}
	bad := Config{
		Name: "a b", Topic: strings.Repeat("x", 250), SessionTimeout: time.Millisecond, Heartbeat: time.Hour, Replicas: -1, Instance: "ü",
	}
	_, err = bad.settle()
	for _, field := range []string{"Name", "Topic", "SessionTimeout", "Heartbeat", "Replicas", "Instance"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	if legal("my app/1") != "my_app_1" {
		t.Error(legal("my app/1"))
	}
}

func TestCheckLeader(t *testing.T) {
	for _, of := range []map[string]string{nil, {}, Metadata("ours")} {
		if err := CheckLeader("ours", of); err != nil {
			t.Error(err)
		}
	}
	err := CheckLeader("ours", Metadata("theirs"))
	if !errors.Is(err, ErrOtherGroup) || !strings.Contains(err.Error(), `"ours"`) || !strings.Contains(err.Error(), `"theirs"`) {
		t.Error(err)
	}
}

const topic = "t"

func member(id string, metadata []byte) kmsg.JoinGroupResponseMember {
	m := kmsg.NewJoinGroupResponseMember()
	m.MemberID, m.ProtocolMetadata = id, metadata
	return m
}

// TestPlan: one member gets the partition, the same one whichever member decides. The owner keeps
// it.
func TestPlan(t *testing.T) {
	newer := kgo.CooperativeStickyBalancer().JoinGroupMetadata([]string{topic}, map[string][]int32{topic: {0}}, 9)
	cases := []struct {
		name      string
		members   []kmsg.JoinGroupResponseMember
		want      string
		strangers int
	}{
		{"first", []kmsg.JoinGroupResponseMember{member("b", claim(topic, false, -1)), member("a", claim(topic, false, -1))}, "a", 0},
		{"a join moves nothing", []kmsg.JoinGroupResponseMember{member("a", claim(topic, false, -1)), member("b", claim(topic, true, 3))}, "b", 0},
		{"nor does a generation", []kmsg.JoinGroupResponseMember{member("a", claim(topic, false, 7)), member("b", claim(topic, true, 3))}, "b", 0},
		{"the latest owner", []kmsg.JoinGroupResponseMember{member("a", claim(topic, true, 3)), member("b", claim(topic, true, 4)), member("c", claim(topic, true, 2))}, "b", 0},
		{"two at once", []kmsg.JoinGroupResponseMember{member("b", claim(topic, true, 4)), member("a", claim(topic, true, 4))}, "a", 0},
		{"an earlier member", []kmsg.JoinGroupResponseMember{member("a", claim(topic, false, -1)), member("b", claim(topic, false, 4))}, "b", 0},
		{"another topic", []kmsg.JoinGroupResponseMember{member("a", claim("other", true, 8)), member("b", claim(topic, false, 1))}, "b", 1},
		{"unreadable metadata", []kmsg.JoinGroupResponseMember{member("a", []byte("?")), member("b", claim(topic, false, 1))}, "b", 1},
		{"written by a library", []kmsg.JoinGroupResponseMember{member("a", claim(topic, true, 8)), member("b", newer)}, "b", 0},
		{"no possible owner", []kmsg.JoinGroupResponseMember{member("a", nil)}, "", 1},
	}
	for _, c := range cases {
		for range 2 {
			all, strangers := plan(topic, c.members)
			got := ""
			for _, a := range all {
				owns, err := assigned(topic, a.MemberAssignment)
				if err != nil {
					t.Fatal(err)
				}
				if owns {
					got += a.MemberID
				}
			}
			if got != c.want || strangers != c.strangers || len(all) != len(c.members) {
				t.Errorf("%s: %q owns it, %d strangers", c.name, got, strangers)
			}
			c.members[0], c.members[len(c.members)-1] = c.members[len(c.members)-1], c.members[0]
		}
	}
}

func FuzzAssigned(f *testing.F) {
	f.Add(assignment(topic, true))
	f.Add(claim(topic, true, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = assigned(topic, data)
		_, _, _ = claimed(topic, data)
	})
}

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
		before.check(t, "at first", false)
		block := make(chan struct{})
		var stop func()
		stop = n.watch(func(yes bool) {
			if yes {
				stop()
				<-block
			}
		})
		n.assign(true, time.Now())
		before.check(t, "the first", false, true)
		n.lose()
		synctest.Wait()
		if n.now() {
			t.Error("a blocked watch delays the end of the nomination")
		}
		close(block)
		before.check(t, "after the block", false, true, false)
		stopBefore()
		stopBefore()
		n.assign(true, time.Now())
		before.check(t, "after stop", false, true, false)
		n.end()
		n.watch(late.see)()
		late.check(t, "after the end", false)
	})
}
