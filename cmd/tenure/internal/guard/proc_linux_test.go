//go:build integration

package guard

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"golang.org/x/sys/unix"
)

// family is a command with children in its group and outside of it, and with a grandchild.
var family = guardtest.Worker{Children: []guardtest.Worker{
	{Name: "child"},
	{Name: "other", Apart: true, Children: []guardtest.Worker{{Name: "grandchild"}}},
}}

// The kernel's lists and a scan of all processes show the same descendants.
func TestDescendants(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(family, long, long)
		lists, whole := descendants(os.Getpid(), nil, unhurried)
		if want := append(c.journal.Workers(""), c.guard.PID()); !whole || !slices.Equal(numbers(lists), slices.Sorted(slices.Values(want))) {
			t.Errorf("got %v, want %v", lists, want)
		}
		children, whole := scan(time.Now().Add(unhurried))
		for _, f := range append(lists, lookAt(os.Getpid())) {
			if lists, scanned := numbers(childrenOf(f.pid)), numbers(children(f.pid)); !slices.Equal(lists, scanned) || !whole {
				t.Errorf("children of %d: %v in the lists, %v in the scan", f.pid, lists, scanned)
			}
		}
		c.guard.Signal(unix.SIGTERM, true)
		c.rest(r)
	})
}

func numbers(all []found) (pids []int) {
	for _, f := range all {
		pids = append(pids, f.pid)
	}
	slices.Sort(pids)
	return pids
}

// A search without time finds a part at most, and says so. Then a job keeps what it found before.
func TestSearchStopsInTime(t *testing.T) {
	withCandidate(t, func(t *testing.T, c *candidate) {
		r := c.run(family, long, long)
		if all, whole := descendants(os.Getpid(), nil, 0); whole || len(all) > 1 {
			t.Errorf("got %v %v", all, whole)
		}
		before := found{pid: os.Getpid(), start: "1"}
		j := job{found: []found{before}}
		if j.search(0); !slices.Contains(j.found, before) {
			t.Errorf("a search without time leaves %v", j.found)
		}
		if j.search(unhurried); slices.Contains(j.found, before) {
			t.Errorf("a whole search leaves %v", j.found)
		}
		if children, whole := scan(time.Now()); whole || children(os.Getpid()) != nil {
			t.Errorf("the scan is whole: %v", whole)
		}
		c.guard.Signal(unix.SIGTERM, true)
		c.rest(r)
	})
}

// A process number may belong to another process meanwhile.
func TestSignalIsForTheProcessThatWasFound(t *testing.T) {
	self := lookAt(os.Getpid())
	if self.parent != os.Getppid() || self.start == "" {
		t.Fatalf("got %+v", self)
	}
	found{pid: self.pid, start: self.start + "0"}.signal(unix.SIGKILL)
}
