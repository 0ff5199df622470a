//go:build integration && unix

package wrap

import (
	"cmp"
	"context"
	"log/slog"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver/faults"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/wait"
)

const (
	ms = time.Millisecond
	// long is a lease that outlasts every test. A candidate is elected earlier only after a
	// release.
	long = 10 * time.Minute
)

// expiring is for tests in which the leader loses its lease. Timers may be 4 s late, so the command
// is dead 4 s before another candidate can be elected. A command that acts after the election
// violates the guarantee, unless the whole machine stopped for longer.
var expiring = tenure.Config{Lease: 6 * time.Second, Tuning: tenure.Tuning{Renew: 300 * ms, TimerLateness: 4 * time.Second}, StopWithin: 300 * ms}

// stage is an election in one process.
type stage struct {
	*testing.T
	store   *memory.Store
	journal *guardtest.Journal
}

// alone runs a test in its own process, because a wrapper adopts all orphans of its process.
func alone(t *testing.T, play func(s *stage)) {
	t.Helper()
	guardtest.Alone(t, func(t *testing.T) {
		play(&stage{t, memory.New(), guardtest.NewJournal(guardtest.Dir(t))})
	})
}

// player is a candidate of that election.
type player struct {
	*stage
	name     string
	store    faults.Store // this player's access to the store
	election *tenure.Election
	wrapper  *Wrapper // nil for a rival
	leave    func()
	log      *guardtest.Output

	done chan struct{} // closed when Run has returned the values below
	code int
	err  error
}

func stopWithin(cfg tenure.Config) time.Duration {
	return cmp.Or(cfg.StopWithin, min(cfg.Lease/5, 5*time.Second)) // as tenure run does
}

func (s *stage) player(name string, cfg tenure.Config) *player {
	s.Helper()
	p := &player{stage: s, name: name, store: faults.New(s.store, 1, faults.Plan{}), log: &guardtest.Output{}, done: make(chan struct{})}
	cfg.ID, cfg.Logger = name, slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	cfg.StopWithin = stopWithin(cfg)
	var err error
	if p.election, err = tenure.New(p.store, "e", cfg); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("%s:\n%s", name, p.log)
		}
	})
	return p
}

// worker returns the options of a command that writes the journal under the name "a".
func (s *stage) worker(w guardtest.Worker) Options {
	w.Name, w.Journal = "a", s.journal.Path
	return Options{Path: guardtest.Self(), Args: append([]string{"worker"}, w.Args()...)}
}

// wrapper starts the candidate "a", which runs a command while it leads.
func (s *stage) wrapper(cfg tenure.Config, o Options) *player {
	s.Helper()
	p := s.player("a", cfg)
	if o.Guard == nil {
		o.Guard = guardtest.Guard
	}
	o.Log, o.StopWithin = slog.New(slog.NewTextHandler(p.log, nil)), stopWithin(cfg)
	var err error
	if p.wrapper, err = New(o); err != nil {
		s.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.code, p.err = p.wrapper.Run(p.election)
	}()
	s.Cleanup(func() {
		p.store.Heal()
		p.wrapper.Hear(syscall.SIGTERM)
		p.wrapper.Hear(syscall.SIGINT)
		p.ended()
		p.wrapper.Close()
	})
	return p
}

// leader starts a wrapper and waits until its command runs.
func (s *stage) leader(cfg tenure.Config, w guardtest.Worker) *player {
	s.Helper()
	p := s.wrapper(cfg, s.worker(w))
	p.begins(1)
	return p
}

// rival starts a candidate that notes "elected" in the journal and leads until it is asked to
// leave.
func (s *stage) rival(lease time.Duration) *player {
	s.Helper()
	p := s.player("rival", tenure.Config{Lease: lease})
	ctx, leave := context.WithCancel(s.Context())
	p.leave = leave
	go func() {
		defer close(p.done)
		p.err = p.election.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
			if pid := s.journal.Alive(""); pid != 0 {
				s.Errorf("process %d runs while the rival leads", pid)
			}
			s.journal.Add("rival", "elected")
			<-ctx.Done()
			return nil
		})
	}()
	s.Cleanup(func() { leave(); p.ended() })
	p.await(func(st tenure.Status) bool { return st.Known })
	return p
}

// await waits for a status.
func (p *player) await(is func(tenure.Status) bool) {
	p.Helper()
	if _, err := p.election.Wait(wait.Context(p.T), is); err != nil {
		p.Fatalf("%s: %v; it is %+v", p.name, err, p.election.Status())
	}
}

func leads(s tenure.Status) bool { return s.State == tenure.StateLeader }

// ended waits for the end of Run.
func (p *player) ended() {
	p.Helper()
	select {
	case <-p.done:
	case <-wait.Context(p.T).Done():
		p.Fatalf("%s does not end", p.name)
	}
}

// ends checks the result of Run.
func (p *player) ends(code int) {
	p.Helper()
	p.ended()
	if p.code != code || p.err != nil {
		p.Errorf("%s ends with %d, %v; want %d", p.name, p.code, p.err, code)
	}
}

// begins waits until the command has started this many times, and the wrapper has logged it.
func (p *player) begins(times int) {
	p.Helper()
	wait.Until(p.T, p.name+" begins", func() bool {
		return p.journal.Count(p.name, "begin") >= times && strings.Count(p.log.String(), "command started") >= times
	})
}

// elected waits until the rival is elected, and checks that no other process acts after that.
func (s *stage) elected() {
	s.Helper()
	at := s.journal.Await(s.T, "rival", "elected").At
	for _, n := range s.journal.Notes() {
		if late := n.At.Sub(at); n.Name != "rival" && late > 0 {
			s.Errorf("%s notes %s %v after the rival was elected", n.Name, n.What, late)
			return
		}
	}
}

// logs waits until the log contains a text.
func (p *player) logs(text string) {
	p.Helper()
	wait.Until(p.T, p.name+" logs: "+text, func() bool { return strings.Contains(p.log.String(), text) })
}

// guard returns the process ID of the present guard.
func (p *player) guard() int { return p.wrapper.present().PID() }

func (p *player) signalGuard(s syscall.Signal) {
	p.Helper()
	must.OK(p, syscall.Kill(p.guard(), s))
}

// killGuard returns when the wrapper knows that the guard is dead.
func (p *player) killGuard() {
	p.Helper()
	g := p.wrapper.present()
	p.signalGuard(syscall.SIGKILL)
	<-g.Dead()
}

// noGuard returns a command line that cannot start a guard.
func noGuard() *exec.Cmd { return exec.Command("/nonexistent/guard") }
