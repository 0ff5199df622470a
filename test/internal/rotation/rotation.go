// Package rotation replaces the credentials of candidates that run as processes, and requires that
// their election goes on.
package rotation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/command"
)

// Lease is that of the candidates.
const Lease = "3s"

// election is the name of the election.
const election = "billing"

// renewals are more than fit into one lease.
const renewals = 5

// Play is a store whose credentials are replaced.
type Play struct {
	// Name is that of the place where the candidates find their credentials.
	Name string
	// Args name the store to tenure run, and Env are variables of its environment.
	Args, Env []string
	// Store is the same store, with credentials that stay.
	Store driver.Store
	// Accept makes the server accept only these credentials, and ends the candidates' connections.
	Accept func(secret string)
	// Hand gives the credentials to the candidates.
	Hand func(secret string)
	// Refusal is in a candidate's log when the server refuses it.
	Refusal string
}

// Run begins with the credentials "one". If the new ones are there before the old ones end, no
// refusal may cost the leader its term. If they come after its lease, a candidate must lead again.
// At the end the leader stops, and the other candidate must lead.
func (p *Play) Run(t *testing.T) {
	t.Helper()
	p.Accept("one")
	p.Hand("one")
	tenure := command.Build(t)
	first, second := p.candidate(t, tenure, "first"), p.candidate(t, tenure, "second")
	before := p.renewed(t, 1)

	says := func(texts ...string) func() bool {
		return func() bool {
			said := first.Says() + second.Says()
			return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(said, text) })
		}
	}

	p.Hand("two")
	p.Accept("two")
	// a busy server may cost a term without a refusal
	if after := p.renewed(t, renewals); after.Term != before.Term && says(p.Refusal)() {
		t.Errorf("term %d of %s ended in a rotation with an overlap; now it is term %d of %s",
			before.Term, before.LeaderID, after.Term, after.LeaderID)
	}

	p.Accept("three")
	wait.Until(t, "the server refuses the old credentials", says(p.Refusal))
	wait.Until(t, "the leader loses its lease, or its command ends before and it cannot release", says("tenure: lost", "release was not confirmed"))
	p.Hand("three")
	handed := time.Now()
	p.renewed(t, 1)
	t.Logf("the next leader writes %v after the new credentials are there; the lease is %s", time.Since(handed), Lease)
	now := p.renewed(t, renewals)

	leader := map[string]*command.Process{"first": first, "second": second}[now.LeaderID]
	if leader == nil {
		t.Fatalf("%q leads", now.LeaderID)
	}
	_ = leader.Stop()
	p.until(t, "the other candidate leads", func(r record.Record) bool { return r.LeaderID != now.LeaderID && r.Held() })
}

func (p *Play) candidate(t *testing.T, tenure, id string) *command.Process {
	args := append(append([]string{}, p.Env...), tenure, "run")
	args = append(args, p.Args...)
	return command.Start(t, "env", append(args, "--election", election, "--lease", Lease, "--id", id, "--", "sleep", "1000")...)
}

// renewed waits until a leader has written n times after the record that is there.
func (p *Play) renewed(t *testing.T, n int) record.Record {
	t.Helper()
	var last record.Record
	p.until(t, fmt.Sprintf("a leader writes %d times", n), func(r record.Record) bool {
		if r.Nonce == last.Nonce || !r.Held() {
			return false
		}
		last = r
		n--
		return n < 0
	})
	return last
}

// until reads the record until it is right.
func (p *Play) until(t *testing.T, what string, right func(record.Record) bool) {
	t.Helper()
	wait.Succeeds(t, what, func(ctx context.Context) error {
		e, err := p.Store.Read(ctx, election)
		if err != nil {
			return err
		}
		if r, err := record.Decode(e.Value); err != nil || !right(r) {
			return errors.Join(err, fmt.Errorf("the record is %s", e.Value))
		}
		return nil
	})
}

// File returns the name of a new file, and a function that replaces it by a text with SECRET
// replaced. The replacement is atomic, as of secret managers.
func File(t testing.TB, name, text string) (path string, hand func(secret string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	return path, func(secret string) {
		if err := os.WriteFile(path+".new", []byte(strings.ReplaceAll(text, "SECRET", secret)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}
