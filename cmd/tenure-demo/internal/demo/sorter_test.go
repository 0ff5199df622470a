package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
)

func stamps(entries []entry) []stamp.Time {
	var all []stamp.Time
	for _, e := range entries {
		all = append(all, e.at)
	}
	return all
}

func TestSorterReleasesEntriesInOrderAfterADelay(t *testing.T) {
	var s sorter
	for _, ms := range []int{30, 10, 20, 10} {
		s.add(entry{at: at(ms)})
	}
	if got := s.due(at(59)); len(got) != 0 {
		t.Errorf("let through too soon: %v", stamps(got))
	}
	if wait, ok := s.next(at(59)); !ok || wait != time.Millisecond {
		t.Errorf("next in %v, %v", wait, ok)
	}
	if got, want := stamps(s.due(at(75))), []stamp.Time{at(10), at(10), at(20)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	s.add(entry{at: at(5)}) // from a process that was frozen
	if wait, ok := s.next(at(75)); !ok || wait != 0 {
		t.Errorf("a late entry waits for %v, %v", wait, ok)
	}
	if got, want := stamps(s.due(at(80))), []stamp.Time{at(5), at(30)}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, ok := s.next(at(80)); ok {
		t.Error("something waits")
	}
}

func TestSorterKeepsTheOrderOfEqualStamps(t *testing.T) {
	var s sorter
	first, second := &deed{}, &deed{}
	s.add(entry{at: at(1), deed: first})
	s.add(entry{at: at(1), deed: second})
	if got := s.due(at(1000)); got[0].deed != first || got[1].deed != second {
		t.Error("swapped")
	}
}
