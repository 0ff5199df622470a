package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/view"
)

func init() { time.Local = time.UTC } // the view shows local time

// size is the size of a terminal.
type size struct{ width, height int }

var (
	standard = size{80, 24}
	sizes    = []size{{40, 10}, standard, {120, 40}}
)

// moment describes a golden file.
type moment struct {
	name string
	play func(view.Screen) (s *story, millis int)
}

var moments = []moment{
	{"start", func(s view.Screen) (*story, int) { return begin(s), 260 }},
	{"steady", func(s view.Screen) (*story, int) { return demo(s), 55100 }},
	{"crash", func(s view.Screen) (*story, int) {
		d := demo(s)
		d.strike(55150, view.Crashed, kill)
		return d, 56200
	}},
	{"frozen", func(s view.Screen) (*story, int) {
		d := demo(s)
		d.strike(55150, view.Frozen, freeze)
		return d, 55300
	}},
	{"leaving", func(s view.Screen) (*story, int) {
		d := demo(s)
		d.strike(55150, view.Asked, "the demo asks the leader to end (SIGTERM)")
		d.strike(55153, view.Leaving, "shutting down")
		return d, 55190
	}},
	{"hand-over", func(s view.Screen) (*story, int) {
		d := demo(s)
		d.leave(55150)
		d.elect(55160, "c1", first+56, graceful(4900), 55900)
		return d, 55900
	}},
	{"nobody", func(s view.Screen) (*story, int) {
		d := demo(s)
		d.leave(55150)
		d.add(55170, view.Fact{What: view.Trouble, Who: "c1", Text: "write: not connected"})
		return d, 58300
	}},
	{"overlap", func(s view.Screen) (*story, int) {
		d := demo(s)
		d.elect(55160, "c1", first+56, view.Fact{Text: "other", Took: ms(20), Least: -1}, 55900)
		d.add(55200, view.Fact{What: view.Overlap, Who: "c1", Term: first + 56,
			Text: "c3 (process 4712) acts in term 1795390486643682 35ms after c1 (process 4711) first acted in term 1795390486643687"})
		return d, 55900
	}},
	{"watch-named", func(s view.Screen) (*story, int) { return found(s), 9000 }},
	{"watch-found-alive", func(s view.Screen) (*story, int) {
		t := found(s)
		t.renew(4, 4000, 9000, "")
		t.facts[1].Who = "node-1"
		t.add(4001, view.Fact{What: view.Elected, Who: "node-1", Term: 4, AtLeast: true, Least: -1})
		return t, 9000
	}},
	{"watch-found-dead", func(s view.Screen) (*story, int) { return foundDead(s), 130000 }},
	{"watch-outage", func(s view.Screen) (*story, int) {
		t := watched(s)
		t.add(80000, view.Fact{What: view.Trouble, Text: "read: no answer from the store"})
		t.add(95000, view.Fact{What: view.Nobody, Text: "the store does not answer, so this is not certain"})
		t.add(110000, view.Fact{What: view.Named, Who: "node-2", Term: 7, Lease: ms(15000), Written: at(108000), Least: -1})
		t.add(112400, view.Fact{What: view.Elected, Who: "node-2", Term: 7, Least: -1})
		return t, 119200
	}},
	{"watch-first-start", func(s view.Screen) (*story, int) {
		t := watching(s)
		t.add(0, view.Fact{What: view.Nobody, Text: "the record is vacant: candidates wait at least 15s before they claim", Expected: at(14000)})
		return t, 9000
	}},
	{"watch", func(s view.Screen) (*story, int) { return watched(s), 119200 }},
	{"watch-silent", func(s view.Screen) (*story, int) { return watched(s), 133000 }},
	{"watch-vacant", func(s view.Screen) (*story, int) {
		w := watched(s)
		w.add(132400, view.Fact{What: view.Nobody, Text: "the lease of node-2 ran out 15.000 s after its last renewal"})
		return w, 133000
	}},
	{"watch-next", func(s view.Screen) (*story, int) {
		w := watched(s)
		w.add(132400, view.Fact{What: view.Nobody, Text: "the lease of node-2 ran out 15.000 s after its last renewal"})
		w.add(132410, view.Fact{What: view.Elected, Who: "node-1", Term: 9, Text: "silence", Took: ms(15010), Least: ms(15000)})
		return w, 140000
	}},
}

// watching is the view of tenure watch without any fact.
func watching(s view.Screen) *story {
	s.Title, s.Members, s.Began, s.Lease, s.Hints = "tenure watch", nil, time.Time{}, 15*time.Second, s.Hints[:1]
	return &story{screen: s}
}

// watched is one in which leadership moves.
func watched(s view.Screen) *story {
	t := watching(s)
	t.add(0, view.Fact{What: view.Elected, Who: "node-1", Term: 4, Address: "10.0.0.1:8080", Least: -1})
	t.renew(4, 4000, 44000, "")
	t.add(47000, view.Fact{What: view.Asked, Who: "node-1", Term: 4, Text: "by ops, to node-2"})
	t.add(47400, view.Fact{What: view.Released, Who: "node-1", Term: 4})
	t.add(47405, view.Fact{What: view.Elected, Who: "node-2", Term: 7, Text: "graceful", Took: ms(5)})
	t.renew(7, 52400, 118000, "10.0.0.2:8080")
	return t
}

// renew adds a renewal every five seconds.
func (s *story) renew(term uint64, from, until int, address string) {
	for t := from; t < until; t += 5000 {
		s.add(t, view.Fact{What: view.Renewed, Term: term, Address: address})
	}
}

// found is the view of tenure watch that begins with the record of a dead leader, 23 minutes old.
func found(s view.Screen) *story {
	t := watching(s)
	t.add(0, view.Fact{What: view.Named, Who: "node-1", Term: 4, Lease: ms(15000), Least: -1, Written: at(-23 * 60_000),
		Text: "not confirmed: last written 23 min ago, by its writer's clock"})
	return t
}

// foundDead is the same after the end of that lease, when another candidate leads, dies and is
// followed.
func foundDead(s view.Screen) *story {
	t := found(s)
	t.add(15000, view.Fact{What: view.Nobody, Text: "the record names node-1, last written 23 min ago by its clock, and no renewal was seen for its lease of 15s"})
	t.add(40000, view.Fact{What: view.Elected, Who: "node-2", Term: 5, Text: "silence", Took: ms(40000), Least: ms(15000), TookAtLeast: true, Downtime: ms(25000)})
	t.renew(5, 40000, 90500, "")
	t.add(105000, view.Fact{What: view.Nobody, Text: "the lease of node-2 ran out 15.000 s after its last renewal", LeaseEnded: at(105000)})
	t.add(105010, view.Fact{What: view.Elected, Who: "node-3", Term: 6, Text: "silence", Took: ms(15010), Least: ms(15000), Downtime: ms(10)})
	t.renew(6, 105010, 130000, "")
	return t
}

func TestFrames(t *testing.T) {
	for _, m := range moments {
		for _, z := range sizes {
			for kind, colour := range map[string]bool{"txt": false, "ansi": true} {
				s := screen
				s.Colour = colour
				if colour && z != standard {
					continue // colors are the same in all sizes
				}
				d, millis := m.play(s)
				frame := d.frame(z, millis)
				must.Golden(t, fmt.Sprintf("testdata/%s-%dx%d.%s", m.name, z.width, z.height, kind), frame+"\n")
				checkSize(t, m.name, frame, z)
			}
		}
	}
}

func checkSize(t *testing.T, name, frame string, z size) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > z.height {
		t.Errorf("%s: %d lines in a terminal of %d", name, len(lines), z.height)
	}
	for _, line := range lines {
		if w := lipgloss.Width(line); w > z.width {
			t.Errorf("%s: %d columns in a terminal of %d: %s", name, w, z.width, line)
		}
	}
}

// The smallest and the oddest sizes must not break anything, at any time.
func TestFramesOfAnySize(t *testing.T) {
	for _, m := range moments {
		d, millis := m.play(screen)
		known := d.until(millis)
		for width := 0; width < 90; width += 1 + width/30 { // only narrow widths differ
			for _, height := range []int{0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 24, 29} {
				checkSize(t, m.name, known.Frame(width, height, at(millis)), size{max(1, width), max(1, height)})
			}
		}
	}
}

// The text alone shows everything that the colors show.
func TestColorsChangeNoText(t *testing.T) {
	for _, m := range moments {
		plain, millis := m.play(screen)
		s := screen
		s.Colour = true
		coloured, _ := m.play(s)
		want, got := plain.frame(standard, millis), coloured.frame(standard, millis)
		if strings.Contains(want, "\x1b") || !strings.Contains(got, "\x1b[") {
			t.Errorf("%s: colours where there should be none, or none", m.name)
		}
		if stripped := trim(ansi.Strip(got)); stripped != want {
			t.Errorf("%s: got without its colours:\n%s\nwant:\n%s", m.name, stripped, want)
		}
	}
}

// trim removes trailing blanks, which may have a color.
func trim(frame string) string {
	lines := strings.Split(frame, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// A frame depends only on the facts and the time. Drawing changes nothing.
func TestFramesArePure(t *testing.T) {
	for _, m := range moments {
		d, millis := m.play(screen)
		known := d.until(millis)
		want := known.Frame(80, 24, at(millis))
		known.Frame(40, 10, at(millis+5000))
		if got := known.Frame(80, 24, at(millis)); got != want {
			t.Errorf("%s: got a second time:\n%s\nwant:\n%s", m.name, got, want)
		}
	}
}

func TestFrameWithoutFacts(t *testing.T) {
	got := view.New(view.Screen{}).Frame(80, 24, time.Now())
	if !strings.Contains(got, "nobody leads yet") {
		t.Errorf("got:\n%s", got)
	}
}

// Text from records and processes is sanitized before it reaches the terminal.
func TestTextsAreSanitized(t *testing.T) {
	s := screen
	s.Place, s.Election, s.Members, s.Hints = "\x1b]0;x\a", "a\nb", []string{"\x1b[2J"}, []string{"\x1bc"}
	d := begin(s)
	d.elect(1000, "\x1b[31mc9\u202e", 1, view.Fact{Address: "\x1b[?1049l"}, 1500)
	d.add(1500, view.Fact{What: view.Overlap, Who: "\x9b2J", Text: "\x1b[H"})
	d.add(1501, view.Fact{What: view.Trouble, Text: "two\r\nlines\a"})
	d.add(1501, view.Fact{What: "\x1b[1m", Text: "new"})
	d.add(1502, view.Fact{What: view.Checked, Text: "\x1b[5m"})
	frame := d.frame(size{200, 50}, 1600)
	for _, r := range frame {
		if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e) {
			t.Fatalf("%q in:\n%q", r, frame)
		}
	}
	checkSize(t, "cleaned", frame, size{200, 50})
}

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

// noon is the start of every story.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(millis int) time.Time { return noon.Add(time.Duration(millis) * time.Millisecond) }

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// story is an election as a list of facts, in milliseconds from noon.
type story struct {
	screen view.Screen
	facts  []view.Fact
	term   uint64 // the latest term and its leader
	leader string
}

var screen = view.Screen{
	Title: "tenure-demo", Place: "nats://127.0.0.1:41231/DEMO_ELECTION", Election: "demo",
	Lease: 2 * time.Second, Renew: 2 * time.Second / 3, Members: []string{"c1", "c2", "c3", "c4", "c5"}, Began: noon,
	Hints: []string{
		"look in:   nats --server nats://127.0.0.1:41231 kv get DEMO_ELECTION demo",
		"fail over: nats --server nats://127.0.0.1:41231 kv del DEMO_ELECTION demo",
	},
}

func begin(s view.Screen) *story {
	t := &story{screen: s}
	for i, id := range s.Members {
		t.add(5+i, view.Fact{What: view.Started, Who: id})
		t.add(200+7*i, view.Fact{What: view.Follows, Who: id})
	}
	return t
}

func (s *story) add(millis int, f view.Fact) {
	f.At = at(millis)
	s.facts = append(s.facts, f)
}

// until returns the model at a time.
func (s *story) until(millis int) *view.Model {
	slices.SortStableFunc(s.facts, func(a, b view.Fact) int { return a.At.Compare(b.At) })
	m := view.New(s.screen)
	for _, f := range s.facts {
		if !f.At.After(at(millis)) {
			m.Take(f)
		}
	}
	return m
}

// frame returns the display at a time.
func (s *story) frame(z size, millis int) string {
	return s.until(millis).Frame(z.width, z.height, at(millis))
}

// elect makes a candidate the leader and renews until the given time.
func (s *story) elect(millis int, id string, term uint64, f view.Fact, until int) {
	s.add(millis-2, view.Fact{What: view.Renewed, Term: term})
	f.What, f.Who, f.Term = view.Elected, id, term
	s.add(millis, f)
	s.leader, s.term = id, term
	for t := millis + 665; t < until; t += 667 {
		s.add(t, view.Fact{What: view.Renewed, Term: term})
	}
}

// strike adds a fact about the leader.
func (s *story) strike(millis int, what view.What, text string) {
	s.add(millis, view.Fact{What: what, Who: s.leader, Term: s.term, Text: text})
}

// leave is a graceful hand-over.
func (s *story) leave(millis int) {
	s.strike(millis, view.Asked, "the demo asks the leader to end (SIGTERM)")
	s.strike(millis+3, view.Leaving, "shutting down")
	s.strike(millis+6, view.Released, "")
	s.add(millis+40, view.Fact{What: view.Ended, Who: s.leader})
}

// back restarts a process.
func (s *story) back(millis int, id string) {
	s.add(millis, view.Fact{What: view.Started, Who: id})
	s.add(millis+180, view.Fact{What: view.Follows, Who: id})
}

const (
	kill   = "the demo kills the leader (SIGKILL)"
	freeze = "the demo freezes the leader for two leases, 4s (SIGSTOP)"
)

func crash(took, least int) view.Fact {
	return view.Fact{Text: "crash", Took: ms(took), Least: ms(least)}
}

func pause(took, least int) view.Fact {
	return view.Fact{Text: "pause", Took: ms(took), Least: ms(least)}
}

func graceful(micros int) view.Fact {
	return view.Fact{Text: "graceful", Took: time.Duration(micros) * time.Microsecond}
}

// first is the first term of a demo on NATS: the server's clock in microseconds.
const first = 1795390486643631

// successor is a leader who follows after a disturbance.
type successor struct {
	at   int
	id   string
	term uint64 // counts from first
	how  view.Fact
}

// round disturbs the leader in each of the three ways, five seconds apart: it is killed, the next
// one is paused, and that which follows leaves. The last leader renews until the given time.
func (s *story) round(begin int, killed, paused, left successor, until int) {
	pausedAt, leaves := begin+5000, begin+10_000
	elect := func(n successor, until int) { s.elect(n.at, n.id, first+n.term, n.how, until) }
	s.back(begin+1040, s.leader)
	s.strike(begin, view.Crashed, kill)
	elect(killed, pausedAt)
	s.strike(pausedAt, view.Frozen, freeze)
	elect(paused, leaves)
	s.add(pausedAt+4000, view.Fact{What: view.Woken, Who: killed.id, Text: "the demo wakes it (SIGCONT)"})
	s.add(pausedAt+4001, view.Fact{
		What: view.Lost, Who: killed.id, Term: first + killed.term, Text: "lease ran out before a renewal was confirmed",
	})
	s.add(pausedAt+4003, view.Fact{What: view.Follows, Who: killed.id})
	s.leave(leaves)
	elect(left, until)
	s.back(leaves+1030, paused.id)
}

// demo is almost a minute of a demo: each of the three disturbances, several times.
func demo(s view.Screen) *story {
	t := begin(s)
	t.add(3, view.Fact{What: view.Note, Text: "warning: replicas: one server (run three)"})
	t.elect(300, "c3", first+1, view.Fact{}, 5100)
	t.round(5100, successor{6979, "c1", 5, crash(1879, 1866)}, successor{11984, "c5", 9, pause(1884, 1852)}, successor{15112, "c2", 13, graceful(5210)}, 20120)
	t.round(20120, successor{21459, "c4", 20, crash(1339, 1331)}, successor{26796, "c3", 24, pause(1676, 1661)}, successor{30130, "c5", 29, graceful(3870)}, 35140)
	t.round(35140, successor{36474, "c1", 36, crash(1334, 1329)}, successor{41812, "c2", 41, pause(1672, 1666)}, successor{45149, "c4", 46, graceful(4410)}, 50150)
	t.strike(50150, view.Crashed, kill)
	t.back(51190, "c4")
	t.elect(51483, "c3", first+51, crash(1333, 1330), 55160)
	t.add(55000, view.Fact{What: view.Checked, Text: "0 overlaps in 2409 acts"})
	return t
}
