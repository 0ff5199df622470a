package view_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/view"
)

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

// demo is almost a minute of a demo: each of the three disturbances, several times.
func demo(s view.Screen) *story {
	t := begin(s)
	t.add(3, view.Fact{What: view.Note, Text: "warning: replicas: one server (run three)"})
	t.elect(300, "c3", first+1, view.Fact{}, 5100)
	t.strike(5100, view.Crashed, kill)
	t.back(6140, "c3")
	t.elect(6979, "c1", first+5, crash(1879, 1866), 10100)
	t.strike(10100, view.Frozen, freeze)
	t.elect(11984, "c5", first+9, pause(1884, 1852), 15100)
	t.add(14100, view.Fact{What: view.Woken, Who: "c1", Text: "the demo wakes it (SIGCONT)"})
	t.add(14101, view.Fact{What: view.Lost, Who: "c1", Term: first + 5, Text: "lease ran out before a renewal was confirmed"})
	t.add(14103, view.Fact{What: view.Follows, Who: "c1"})
	t.leave(15100)
	t.elect(15112, "c2", first+13, graceful(5210), 20120)
	t.back(16130, "c5")
	t.strike(20120, view.Crashed, kill)
	t.back(21160, "c2")
	t.elect(21459, "c4", first+20, crash(1339, 1331), 25120)
	t.strike(25120, view.Frozen, freeze)
	t.elect(26796, "c3", first+24, pause(1676, 1661), 30120)
	t.add(29120, view.Fact{What: view.Woken, Who: "c4", Text: "the demo wakes it (SIGCONT)"})
	t.add(29121, view.Fact{What: view.Lost, Who: "c4", Term: first + 20, Text: "lease ran out before a renewal was confirmed"})
	t.add(29123, view.Fact{What: view.Follows, Who: "c4"})
	t.leave(30120)
	t.elect(30130, "c5", first+29, graceful(3870), 35140)
	t.back(31150, "c3")
	t.strike(35140, view.Crashed, kill)
	t.back(36180, "c5")
	t.elect(36474, "c1", first+36, crash(1334, 1329), 40140)
	t.strike(40140, view.Frozen, freeze)
	t.elect(41812, "c2", first+41, pause(1672, 1666), 45140)
	t.add(44140, view.Fact{What: view.Woken, Who: "c1", Text: "the demo wakes it (SIGCONT)"})
	t.add(44141, view.Fact{What: view.Lost, Who: "c1", Term: first + 36, Text: "lease ran out before a renewal was confirmed"})
	t.add(44143, view.Fact{What: view.Follows, Who: "c1"})
	t.leave(45140)
	t.elect(45149, "c4", first+46, graceful(4410), 50150)
	t.back(46170, "c2")
	t.strike(50150, view.Crashed, kill)
	t.back(51190, "c4")
	t.elect(51483, "c3", first+51, crash(1333, 1330), 55160)
	t.add(55000, view.Fact{What: view.Checked, Text: "0 overlaps in 2409 acts"})
	return t
}

var update = flag.Bool("update", false, "write the golden files and the picture")

// golden compares got with a file, or writes the file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}
