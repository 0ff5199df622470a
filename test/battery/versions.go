package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/internal/command"
)

// standIn is the commit that stands in for the former version while there is no tag.
const standIn = "f48d4759"

// versionRows need another build, so only full runs play them.
func versionRows() []row {
	const title = "candidates of the former version are replaced by this version one after another, and then the other way round: " +
		"one of each version leads in turn, and is stopped for 2 leases"
	r := row{name: "upgrade", title: title, play: (*stage).upgrade, worker: slow, run: []string{"--stop-within", "500ms"},
		former: true, full: true, flaws: []*flaw{releasedEarly}}
	pushes := r
	pushes.name, pushes.title, pushes.run, pushes.flaws = "upgrade-peers", "the same with leaders that push (--peer)", slices.Concat(r.run, []string{"--peer", "127.0.0.1:0"}), nil
	return []row{r, pushes}
}

// buildFormer builds tenure from the source of the former version, in a clone.
func (b *battery) buildFormer() (string, error) {
	top, err := source()
	if err != nil {
		return "", err
	}
	commit := b.before
	if commit == "" {
		commit = lastTag(b.ctx, top)
	}
	dir := filepath.Join(b.bin, "former")
	clone := filepath.Join(dir, "source")
	for _, args := range [][]string{
		{"clone", "--quiet", "--no-checkout", "--shared", filepath.Join(top, "..", ".."), clone},
		{"-C", clone, "checkout", "--quiet", commit},
	} {
		if out, err := exec.CommandContext(b.ctx, "git", args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("the former version %s: git %s: %w\n%s", commit, args[0], err, out)
		}
	}
	return command.BuildFrom(b.ctx, clone, dir, command.Tenure)
}

// lastTag returns the last release before this commit.
func lastTag(ctx context.Context, dir string) string {
	out, err := exec.CommandContext(ctx, "git", "-C", dir, "describe", "--tags", "--abbrev=0", "--match", "v*", "HEAD").Output()
	if err != nil {
		return standIn
	}
	return strings.TrimSpace(string(out))
}

// upgrade replaces the former version by this one, and this one by the former one.
func (s *stage) upgrade() {
	former := must(s.b.former())
	for _, binary := range []string{s.tenure, former} {
		for _, c := range s.candidates {
			s.replace(c, binary)
		}
	}
}

// replace lets a candidate go on with another version, which then leads, and after it the next
// candidate, which has the old version unless it is the last one. Each loses its lease by a stop.
func (s *stage) replace(c *candidate, binary string) {
	s.settle()
	leader, old := s.leader()
	guard, err := c.guard()
	if !errors.Is(err, errNoGuard) { // a follower has none if it has lost one by a stop
		check(err)
	}
	at := s.stopWith(c, guard)
	if c == leader {
		s.succeed(at, old)
	}
	c.tenure = binary
	check(s.restartTenure(c))
	for _, to := range []*candidate{c, s.after(c)} {
		s.elect(to)
		s.compare()
		s.inject(freeze)
	}
}

// elect asks the leader to hand over to a candidate. If another one leads then, as often happens
// over SQL databases, all but that candidate are stopped until it leads.
func (s *stage) elect(to *candidate) {
	s.settle()
	if c, old := s.leader(); c != to {
		if at, ok := s.tryToHandOver(c, to.id()); ok {
			s.succeed(at, old)
		}
	}
	s.settle()
	for c, old := s.leader(); c != to; c, old = s.leader() {
		s.stopOthers(to, old)
	}
}

// stopOthers stops all candidates but one until another reign begins. A process that is stopped may
// hold the lock of an SQLite file, so it ends after five leases in any case.
func (s *stage) stopOthers(to *candidate, old reign) {
	ctx, cancel := context.WithTimeout(s.b.ctx, 5*s.lease)
	defer cancel()
	s.note("all but %s: %s", to.id(), freeze.name)
	var ends []func() error
	for _, c := range s.candidates {
		if c != to {
			ends = append(ends, must(freeze.begin(c)))
		}
	}
	_, err := s.watch.await(ctx, old)
	for _, end := range ends {
		check(end())
	}
	if err != nil {
		check(s.b.ctx.Err())
		s.settle()
	}
}

// compare asks each version for the leader and its token.
func (s *stage) compare() {
	for {
		_, before := s.leader()
		answers := map[string]string{}
		for _, c := range s.candidates {
			answers[must(s.status(c.tenure))] = c.id()
		}
		if _, after := s.leader(); after != before || s.b.ctx.Err() != nil {
			continue // the versions saw different leaders
		}
		want := fmt.Sprintf("c%d %d", before.candidate, before.token)
		if answers[want] == "" || len(answers) > 1 {
			s.wrong("the versions read the record in different ways, not as %q: %q", want, answers)
		}
		return
	}
}

// status returns the leader and its token, as a version reads them.
func (s *stage) status(tenure string) (string, error) {
	address := s.server.Addresses()[0]
	cmd := exec.CommandContext(s.b.ctx, tenure, "status", "--store", s.row.kind().URL(address), "--election", election, "--json")
	cmd.Env = environment(s.mark, s.row.kind().Environ(address)...)
	crew.Separate(cmd)
	out, err := cmd.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return "", err
	}
	var seen struct {
		Leader string
		Term   uint64
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		return "", fmt.Errorf("status of %s: %w: %s", tenure, err, out)
	}
	return fmt.Sprintf("%s %d", seen.Leader, seen.Term), nil
}
