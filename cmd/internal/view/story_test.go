package view_test

import (
	"slices"
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
