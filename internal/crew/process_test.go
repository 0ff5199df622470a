//go:build integration && unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
)

const memberVariable = "TENURE_TEST_CREW"

type settings struct{ Name string }

type report struct {
	Said string
	N    int
}

// TestMain runs the tests, or a member: it greets, and counts until its input ends.
func TestMain(m *testing.M) {
	if os.Getenv(memberVariable) == "" {
		os.Exit(m.Run())
	}
	var s settings
	rest, err := Settings(os.Stdin, &s)
	if err != nil {
		os.Exit(3)
	}
	reports := NewReporter(os.Stdout)
	order, _ := rest.ReadString('\n')
	ctx, cancel := Until(context.Background(), rest)
	reports.Send(report{Said: s.Name + " " + order})
	fmt.Println("this is no report")
	fmt.Fprint(os.Stderr, "this is an err", "or\n")
	for n := 1; ctx.Err() == nil; n++ {
		reports.Send(report{N: n})
		time.Sleep(time.Millisecond)
	}
	cancel()
	os.Exit(7)
}

// member is a process, with what it reports and says.
type member struct {
	*Process
	t       *testing.T
	reports Journal[report]
	other   Journal[string]
}

func hire(t *testing.T) *member {
	t.Helper()
	m := &member{t: t}
	cmd := Self()
	cmd.Env = append(os.Environ(), memberVariable+"=1")
	var err error
	m.Process, err = Hire(cmd, settings{"c1"}, func(r report) { m.reports.Add(r) }, func(s string) { m.other.Add(s) })
	must(t, err)
	t.Cleanup(func() {
		_ = m.Kill()
		<-m.Ended()
	})
	must(t, m.Send("an order"))
	return m
}

// counts waits until the member counts on.
func (m *member) counts() {
	m.t.Helper()
	_, err := m.reports.Await(wait.Context(m.t), m.reports.Mark(), "a number", func(r report) bool { return r.N > 0 })
	if err != nil {
		m.t.Fatal(err)
	}
}

// TestMember: a member gets its settings and orders, and everything that it says arrives.
func TestMember(t *testing.T) {
	m := hire(t)
	for _, line := range []string{"this is no report", "this is an error"} {
		if _, err := m.other.Await(wait.Context(t), 0, line, func(s string) bool { return s == line }); err != nil {
			t.Fatal(err)
		}
	}
	m.counts()
	if !m.Running() {
		t.Error("it does not run")
	}
	var exit *exec.ExitError
	if err := m.Leave(); !errors.As(err, &exit) || m.Code() != 7 || m.Running() {
		t.Errorf("it ended with %v, %d", err, m.Code())
	}
	all := m.reports.Since(0)
	if all[0].Said != "c1 \"an order\"\n" || all[len(all)-1].N != len(all)-1 {
		t.Errorf("%d reports, from %+v to %+v", len(all), all[0], all[len(all)-1])
	}
}

// TestEnds: a frozen member does nothing until it is continued, and can be killed. After the end of
// a member nothing is an error.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*Process) error{
		"killed":        (*Process).Kill,
		"killed by PID": func(p *Process) error { return Kill(p.PID()) },
		"stopped":       func(p *Process) error { return errors.Join(p.Stop(), p.Continue()) },
	} {
		t.Run(name, func(t *testing.T) {
			m := hire(t)
			m.counts()
			must(t, m.Freeze())
			wait.Until(t, "the member is stopped", func() bool {
				state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(m.PID())).Output()
				return err == nil && strings.HasPrefix(string(state), "T")
			})
			must(t, m.Continue())
			m.counts()
			must(t, errors.Join(m.Freeze(), end(m.Process)))
			<-m.Ended()
			if m.Code() != -1 {
				t.Errorf("it ended with %d", m.Code())
			}
			if err := errors.Join(m.Kill(), m.Stop(), m.Freeze(), m.Continue(), Kill(m.PID())); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCannotStart(t *testing.T) {
	if _, err := Start(exec.Command("/there/is/no/such/program")); err == nil {
		t.Error("it was started")
	}
	if _, err := Hire(exec.Command("/there/is/no/such/program"), nil, func(int) {}, nil); err == nil {
		t.Error("it was hired")
	}
	if _, err := Settings(strings.NewReader(""), nil); !errors.Is(err, io.EOF) {
		t.Errorf("no settings: %v", err)
	}
	if _, err := Settings(strings.NewReader("{\n"), &settings{}); err == nil {
		t.Error("wrong settings are not refused")
	}
}

// TestStart: a program that takes no settings keeps its own output, and is apart from the terminal.
func TestStart(t *testing.T) {
	var out strings.Builder
	cmd := exec.Command("/bin/sh", "-c", "ps -o pgid= -p $$; echo $$; exit 4")
	cmd.Stdout = &out
	p, err := Start(cmd)
	must(t, err)
	<-p.Ended()
	group, pid := "", ""
	if _, err := fmt.Sscan(out.String(), &group, &pid); err != nil || group != pid || p.Code() != 4 {
		t.Errorf("%q, %v, exit code %d", out.String(), err, p.Code())
	}
}

// must stops a test that cannot go on.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
