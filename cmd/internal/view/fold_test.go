package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/view"
)

// headline returns the line with the leader.
func (s *story) headline(millis int) string {
	return strings.TrimSpace(strings.Split(s.frame(standard, millis), "\n")[2])
}

// expect compares the beginnings of headlines at some times.
func (s *story) expect(t *testing.T, want map[int]string) {
	t.Helper()
	for millis, text := range want {
		if got := s.headline(millis); !strings.HasPrefix(got, text) {
			t.Errorf("at %d: got %q, want %q", millis, got, text)
		}
	}
}

func TestHeadlineShowsTheLeader(t *testing.T) {
	for _, c := range []struct {
		why  string
		add  func(*story)
		want map[int]string
	}{
		{"a renewal that was on its way says nothing of a leader that is dead", func(s *story) {
			s.strike(2000, view.Crashed, kill)
			s.add(2001, view.Fact{What: view.Renewed, Term: 1})
		}, map[int]string{1999: "● c3 leads  term #1 (1)", 2100: "✗ c3 has died  term #1 (1)  its lease", 4000: "✗ c3 has died", 4002: "○ nobody leads  the lease of c3 is over"}},
		{"a renewal that was on its way says nothing of a leader that is frozen", func(s *story) {
			s.strike(2000, view.Frozen, freeze)
			s.add(2001, view.Fact{What: view.Renewed, Term: 1})
		}, map[int]string{2100: "‖ c3 is frozen", 4002: "○ nobody leads"}},
		{"woken in time, it leads on", func(s *story) {
			s.strike(2000, view.Frozen, freeze)
			s.add(2500, view.Fact{What: view.Woken, Who: "c3"})
			s.add(2600, view.Fact{What: view.Renewed, Term: 1})
		}, map[int]string{2400: "‖ c3 is frozen", 2700: "● c3 leads  term #1 (1)  for 2.4 s"}},
		{"a late fact of an earlier term changes nothing", func(s *story) {
			s.strike(2000, view.Frozen, freeze)
			s.elect(3400, "c1", 5, pause(1400, 1390), 6000)
			s.add(5000, view.Fact{What: view.Lost, Who: "c3", Term: 1})
			s.add(5001, view.Fact{What: view.Released, Who: "c3", Term: 1})
		}, map[int]string{5100: "● c1 leads  term #2 (5)"}},
		{"another candidate's end is not the leader's", func(s *story) {
			s.add(1500, view.Fact{What: view.Crashed, Who: "c1"})
			s.add(1600, view.Fact{What: view.Frozen, Who: "c2"})
		}, map[int]string{1700: "● c3 leads"}},
		{"a renewal of the next term comes before the news of its leader", func(s *story) {
			s.leave(2000)
			s.add(2009, view.Fact{What: view.Renewed, Term: 5, Address: "new:1"})
			s.add(2011, view.Fact{What: view.Elected, Who: "c1", Term: 5})
		}, map[int]string{2010: "○ nobody leads  for 0.0 s, since c3 released term #1", 2012: "● c1 leads  term #2 (5)  for 0.0 s  at new:1"}},
		{"a lost lease runs out for the others", func(s *story) { s.strike(1500, view.Lost, "") },
			map[int]string{1600: "○ c3 lost the lease  term #1 (1)", 4000: "○ nobody leads"}},
		{"the reason of a vacancy", func(s *story) {
			s.strike(1500, view.Released, "")
			s.add(1600, view.Fact{What: view.Nobody, Text: "the record was deleted"})
		}, map[int]string{1550: "○ nobody leads  for 0.0 s, since c3 released", 1700: "○ nobody leads  for 0.2 s, the record was deleted"}},
		{"silence", func(*story) {}, map[int]string{1600: "● c3 leads", 4000: "○ c3 is silent  term #1 (1)"}},
		{"the same leader again is the same term", func(s *story) {
			s.add(1200, view.Fact{What: view.Elected, Who: "c3", Term: 1, Address: "later:1"})
		}, map[int]string{1300: "● c3 leads  term #1 (1)  for 1.0 s  at later:1"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := begin(screen)
			s.elect(300, "c3", 1, view.Fact{}, 1500)
			c.add(s)
			s.expect(t, c.want)
		})
	}
}

// However many facts there are, the view shows the newest, and memory and time are bounded.
func TestLongHistoryIsBounded(t *testing.T) {
	s := view.New(screen)
	for i := range 5000 {
		who := fmt.Sprintf("c%d", i%5+1)
		s.Take(view.Fact{At: at(i * 1000), What: view.Elected, Who: who, Term: uint64(2*i + 1), Took: ms(10)})
		s.Take(view.Fact{At: at(i*1000 + 900), What: view.Crashed, Who: who, Term: uint64(2*i + 1)})
	}
	if frame := s.Frame(200, 60, at(5000*1000-50)); !strings.Contains(frame, "c5 has died  term #5000 (9999)") {
		t.Errorf("got:\n%s", frame)
	}
}

// No column shows two leaders at once.
func TestOneLeaderPerColumn(t *testing.T) {
	s := demo(screen)
	for millis := 500; millis < 55000; millis += 370 {
		seen := map[int]string{}
		for _, lane := range strings.Split(s.frame(standard, millis), "\n")[5:10] {
			for i, sign := range []rune(lane) {
				if sign == '█' && seen[i] != "" {
					t.Fatalf("at %d, column %d: %s\nand %s", millis, i, seen[i], lane)
				} else if sign == '█' {
					seen[i] = lane
				}
			}
		}
	}
}
