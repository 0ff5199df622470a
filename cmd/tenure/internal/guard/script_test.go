//go:build integration && unix

package guard

import (
	"encoding/json"
	"os/exec"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/internal/test/wait"
	"golang.org/x/sys/unix"
)

// script is a candidate that sends the messages of a test at the times of the test.
type script struct {
	*testing.T
	files   *files
	orders  *pipe
	reports *json.Decoder
	guard   *exec.Cmd
}

func newScript(t *testing.T) *script {
	t.Helper()
	f, err := newFiles()
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t, f, &pipe{w: f.orders}, json.NewDecoder(f.reports), guardtest.Guard()}
	s.guard.Args = append(s.guard.Args, f.numbers()...)
	if err := s.guard.Start(); err != nil {
		t.Fatal(err)
	}
	f.given()
	if err := f.reports.SetReadDeadline(time.Now().Add(wait.Left())); err != nil {
		t.Fatal(err)
	}
	s.hear(report{Ready: true})
	return s
}

func (s *script) say(o order) {
	s.Helper()
	if err := s.orders.send(o); err != nil {
		s.Fatal(err)
	}
}

func (s *script) run(c Command) { s.say(order{Run: &c}) }
func (s *script) answer(question uint64, remains time.Duration) {
	s.say(order{Left: &left{question, remains, long}})
}

// hear checks the next report, but for the number of a process.
func (s *script) hear(want report) {
	s.Helper()
	var got report
	if err := s.reports.Decode(&got); err != nil {
		s.Fatal(err)
	}
	if want.Started != 0 && got.Started != 0 {
		want.Started = got.Started
	}
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if string(a) != string(b) {
		s.Fatalf("it reports %s, want %s", a, b)
	}
}

// end closes the orders, after which the guard says no more.
func (s *script) end() {
	s.Helper()
	s.files.close()
	var more report
	if err := s.reports.Decode(&more); err == nil {
		s.Errorf("it reports: %+v", more)
	}
	if err := s.guard.Wait(); err != nil {
		s.Error(err)
	}
	_ = s.files.reports.Close()
}

var (
	exits   = shell("exit 7")
	exited  = report{Ended: &Ending{Code: 7}}
	empty   = report{Empty: true}
	started = report{Started: 1}
)

// scripts are conversations that a candidate and a guard may have when either is slow.
func TestGuardHearsWhatIsMeant(t *testing.T) {
	t.Parallel()
	for why, talk := range map[string]func(s *script){
		"an answer to an earlier question starts nothing": func(s *script) {
			s.run(exits)
			s.hear(report{Question: 1})
			s.say(order{Renewed: true})
			s.hear(report{Question: 2})
			s.answer(1, long)
			s.answer(2, 0)
			s.hear(empty)
		},
		"nor does one from another term": func(s *script) {
			s.run(exits)
			s.hear(report{Question: 1})
			s.answer(1, long)
			s.hear(started)
			s.hear(exited)
			s.hear(empty)
			s.run(exits)
			s.hear(report{Question: 2})
			s.answer(1, long)
			s.answer(2, 0)
			s.hear(empty)
		},
		"what is to be killed before it was begun is not begun": func(s *script) {
			s.run(exits)
			s.hear(report{Question: 1})
			s.say(order{Kill: true})
			s.hear(empty)
			s.answer(1, long)
		},
		"nor is what is asked to end": func(s *script) {
			s.run(exits)
			s.hear(report{Question: 1})
			s.say(order{Signal: &forward{int(unix.SIGTERM), true}})
			s.hear(empty)
			s.answer(1, long)
		},
		"signals and Kill are for what runs": func(s *script) {
			s.say(order{Signal: &forward{int(unix.SIGTERM), true}})
			s.say(order{Signal: &forward{int(unix.SIGTERM), false}})
			s.say(order{Kill: true})
			s.run(exits)
			s.hear(report{Question: 1})
			s.answer(1, long)
			s.hear(started)
			s.hear(exited)
			s.hear(empty)
		},
		"nothing is begun for a candidate that is gone": func(s *script) {
			s.run(exits)
			s.hear(report{Question: 1})
		},
	} {
		t.Run(why, func(t *testing.T) {
			guardtest.Alone(t, func(t *testing.T) {
				s := newScript(t)
				talk(s)
				s.end()
			})
		})
	}
}
