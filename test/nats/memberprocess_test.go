//go:build integration && linux

package nats

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// settings are the settings of a member process.
type settings struct {
	URL, Bucket string
	Lease       time.Duration
	Own         bool // it has its own connection; otherwise it borrows one
	Lingers     bool // its work stops only when the process should end
}

// memberVariable makes TestMemberProcess a member.
const memberVariable = "TENURE_TEST_MEMBER"

// memberID is the ID of a member process.
const memberID = "process"

// said is a report of a member process.
type said struct {
	What   string
	Token  uint64  // of acts
	Stamps []int64 // of acts
}

// A member process reports one of these.
const (
	saysActs    = "acts"    // its term was valid when it checked
	saysFollows = "follows" // it sees that another member leads
	saysVacant  = "vacant"  // it sees a vacancy
	saysRemade  = "remade"  // it sees that the store was recreated
)

// TestMemberProcess is not a test. It is the program of a member process, which takes part until
// its standard input ends.
func TestMemberProcess(t *testing.T) {
	if os.Getenv(memberVariable) == "" {
		t.Skip("the other tests start it")
	}
	var s settings
	rest, err := crew.Settings(os.Stdin, &s)
	must(t, err)
	ctx, cancel := crew.Until(context.Background(), rest)
	defer cancel()
	opts := []natskv.Option{natskv.Pristine()}
	if s.Own {
		opts = append(opts, natskv.OwnConnection())
	}
	store := openStore(t, connect(t, s.URL), s.Bucket, opts...)
	reports := crew.NewReporter(os.Stdout)
	e, err := tenure.New(store, key, tenure.Config{ID: memberID, Lease: s.Lease, OnEvent: func(e tenure.Event) {
		switch {
		case errors.Is(e.Cause, &tenure.StoreError{Kind: driver.Recreated}):
			reports.Send(said{What: saysRemade})
		case e.Kind == tenure.EventLeader && !e.Leader.Exists():
			reports.Send(said{What: saysVacant})
		case e.Kind == tenure.EventLeader && e.Leader.ID != e.ID:
			reports.Send(said{What: saysFollows})
		}
	}})
	must(t, err)
	asker := asking.Start(func(_ string, token uint64, stamps []int64) {
		reports.Send(said{saysActs, token, stamps})
	})
	defer asker.Stop()
	must(t, e.Run(ctx, func(work context.Context, t *tenure.Term) error {
		asker.Enter(key, t, asking.ByTerm)
		<-work.Done()
		if s.Lingers {
			<-ctx.Done()
		}
		return nil
	}))
}

// process is a candidate in its own process, which can be frozen.
type process struct {
	*crew.Process
	f       *field
	relay   *relay.Relay
	leave   func() // ends the process gracefully and waits for it
	reports crew.Journal[said]
}

// start starts a member process.
func (f *field) start(own, lingers bool) *process {
	f.Helper()
	p := &process{f: f, relay: f.relayed()}
	cmd := crew.Self("-test.run=^TestMemberProcess$")
	cmd.Env = append(os.Environ(), memberVariable+"=1")
	var err error
	p.Process, err = crew.Hire(cmd, settings{p.relay.URL(), f.kv.Bucket(), f.lease, own, lingers}, func(s said) {
		f.Book.Add(key, memberID, s.Token, s.Stamps...)
		p.reports.Add(s)
	}, func(line string) { f.Log("the member process says: ", line) })
	must(f, err)
	p.leave = sync.OnceFunc(func() {
		p.relay.Heal()
		_ = p.Continue()
		if err := p.Leave(); err != nil {
			f.Errorf("the member process: %v", err)
		}
	})
	f.Cleanup(p.leave)
	return p
}

// leads waits until the process leads with a token other than the given one, and returns its token.
func (p *process) leads(other uint64) (token uint64) {
	p.f.Helper()
	s, err := p.reports.Await(wait.Context(p.f), 0, "the member process to lead", func(s said) bool {
		return s.Token != 0 && s.Token != other
	})
	must(p.f, err)
	return s.Token
}

// says waits until the process has said a word.
func (p *process) says(word string) {
	p.f.Helper()
	_, err := p.reports.Await(wait.Context(p.f), 0, "the member process to say "+word, func(s said) bool { return s.What == word })
	must(p.f, err)
}
