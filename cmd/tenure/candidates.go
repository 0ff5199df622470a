package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/reread"
	"github.com/tenure-go/tenure/internal/members"
)

const (
	askWithin  = 3 * time.Second // candidates, over the store
	readWithin = 2 * time.Second // the reports of processes
)

// candidate is one candidate, as --json has it. Only a candidate itself knows its state, whether it
// is eligible, and so on.
type candidate struct {
	ID          string     `json:"id"`
	Known       string     `json:"known"`          // members.Answered, Reported, or knownLed
	From        string     `json:"from,omitempty"` // the URL of a report
	State       string     `json:"state,omitempty"`
	Eligible    *bool      `json:"eligible,omitempty"`
	Priority    *int       `json:"priority,omitempty"`
	LeaseMillis int64      `json:"leaseMillis,omitempty"`
	Address     string     `json:"address,omitempty"`
	LastContact *time.Time `json:"lastContact,omitempty"`
	Problem     string     `json:"problem,omitempty"`

	incarnation string
}

// knownLed says that a candidate is known by the record alone, besides the ways of package members.
const knownLed = "led"

func candidateOf(m *admin.Member, known, from string) candidate {
	c := candidate{
		ID: m.ID, Known: known, From: from, State: m.State, Eligible: &m.Eligible, Priority: &m.Priority, LeaseMillis: m.LeaseMillis,
		Address: m.Address, Problem: m.Problem, incarnation: m.Incarnation,
	}
	if at := m.LastContact.UTC(); !m.LastContact.IsZero() {
		c.LastContact = &at
	}
	return c
}

// present are the candidates of one election.
type present struct {
	Candidates []candidate `json:"candidates,omitempty"`
	// Unknown says why there may be others, or why none can be known.
	Unknown string `json:"candidatesUnknown,omitempty"`

	none string // what it means that there is none
}

// found are the candidates that were found, by election.
type found struct {
	asked    bool // over the store
	reports  bool // --member is given
	problems []string

	mu  sync.Mutex
	all map[string][]candidate
}

// find begins to ask the candidates of an election, or of all if it is empty, over the store and at
// the URLs of --member. The returned function waits for the answers.
func (m *memberFlags) find(ctx context.Context, store driver.Store, election string) (wait func() *found) {
	f := &found{all: map[string][]candidate{}, reports: len(m.addresses) > 0}
	wanted := func(name string) bool { return election == "" || name == election }
	var tasks sync.WaitGroup
	if p := driver.AbilitiesOf(store).Presence; p != nil {
		f.asked = true
		tasks.Go(func() { f.ask(ctx, p, election, wanted) })
	}
	tasks.Go(func() { f.readAll(ctx, m, wanted) })
	return func() *found {
		tasks.Wait()
		slices.Sort(f.problems)
		return f
	}
}

func (f *found) ask(ctx context.Context, store driver.Presence, election string, wanted func(string) bool) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	texts, err := store.Candidates(ctx, election)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		f.asked = false
	case err != nil:
		f.problems = append(f.problems, fault.Masked(err.Error()))
	}
	f.add(members.Answers(texts, wanted), members.Answered, "")
}

// add runs under the lock.
func (f *found) add(all []admin.Member, known, from string) {
	for i := range all {
		m := &all[i]
		f.all[m.Election] = append(f.all[m.Election], candidateOf(m, known, from))
	}
}

// readAll reads the reports of all processes.
func (f *found) readAll(ctx context.Context, m *memberFlags, wanted func(string) bool) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	take := func(url string, all []admin.Member, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if err != nil {
			f.problems = append(f.problems, members.Shown(url)+": "+members.Shortened(err.Error()))
		}
		f.add(all, members.Reported, members.Shown(url))
	}
	members.ReadAll(ctx, m.client(), m.addresses, wanted, func(url string, _ []members.Address, err error) { take(url, nil, err) },
		func(at members.Address, all []admin.Member, err error) { take(at.URL, all, err) })
}

// of returns the candidates of an election: one entry for each that both answered and reported, and
// the last leader if it is known by the record alone.
func (f *found) of(election, lastLeader string) present {
	p := present{none: f.none()}
	p.Candidates = members.Once(f.all[election], func(c candidate) (known, incarnation string) { return c.Known, c.incarnation })
	isLast := func(c candidate) bool { return c.ID == lastLeader }
	if lastLeader != "" && !slices.ContainsFunc(p.Candidates, isLast) {
		p.Candidates = append(p.Candidates, candidate{ID: lastLeader, Known: knownLed})
	}
	slices.SortStableFunc(p.Candidates, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.From, b.From)) })
	p.Unknown = f.unknown()
	return p
}

// none says what it means that no candidate was found.
func (f *found) none() string {
	switch {
	case f.asked:
		return "none answered"
	case f.reports:
		return "none reported"
	}
	return "not known"
}

// unknown says why there may be more candidates than those found.
func (f *found) unknown() string {
	switch {
	case len(f.problems) > 0:
		more := ""
		if n := len(f.problems) - 1; n > 0 {
			more = fmt.Sprintf(", and %d other problems", n)
		}
		return f.problems[0] + more
	case !f.asked && !f.reports:
		return "over this store, candidates cannot be asked: give the URLs of their processes with --member"
	}
	return ""
}

// print writes a row for each candidate.
func (p present) print(row func(name, format string, args ...any), now time.Time) {
	for _, c := range p.Candidates {
		row("candidate", "%s", c.describe(now))
	}
	switch {
	case len(p.Candidates) == 0 && p.Unknown != "":
		row("candidate", "%s: %s", p.none, p.Unknown)
	case len(p.Candidates) == 0:
		row("candidate", "%s", p.none)
	case p.Unknown != "":
		row("candidate", "others may exist: %s", p.Unknown)
	}
}

// describe returns one line.
func (c candidate) describe(now time.Time) string {
	if c.Known == knownLed {
		return c.ID + ": has led before"
	}
	text := fmt.Sprintf("%s: %s", c.ID, c.State)
	if c.Eligible != nil && !*c.Eligible {
		text += ", not eligible"
	}
	if c.Priority != nil && *c.Priority != 0 {
		text += fmt.Sprintf(", priority %d", *c.Priority)
	}
	if c.LeaseMillis > 0 {
		text += fmt.Sprintf(", lease %v", millis(c.LeaseMillis))
	}
	if c.LastContact != nil {
		text += fmt.Sprintf(", last contact with the store %v ago by its clock", now.Sub(*c.LastContact).Round(100*time.Millisecond))
	}
	if c.Problem != "" {
		text += ", problem: " + c.Problem
	}
	if c.From != "" {
		return text + "; reported by " + c.From
	}
	return text + "; answered"
}

// memberFlags name the processes that say of themselves which candidates they have.
type memberFlags struct {
	addresses []string
	token     string
	secret    string // in the file, when it was first read
}

func (m *memberFlags) define(f *pflag.FlagSet) {
	f.StringArrayVar(&m.addresses, "member", nil, "URL of the metrics of a process, as tenure run --metrics serves them, or of its dashboard.Report; "+
		"dns+http://NAME:PORT stands for one process at each address of the name; may be given more than once")
	f.StringVar(&m.token, "member-token-file", "", "file with the token that the members ask for")
}

// resolve checks the flags, and completes the addresses.
func (m *memberFlags) resolve(named func(flag string) string, storeCount int) error {
	for i, a := range m.addresses {
		u, err := url.Parse(a)
		if err != nil || members.Check(a) != nil || u.User != nil {
			return fault.OfValue(fault.New("give a URL such as http://node-1:9464 or dns+http://workers.prod.svc:9464, and a token with --member-token-file",
				"%s %s: is not the URL of a member", named("member"), fault.Quote(a)))
		}
		if path := strings.Trim(u.Path, "/"); path == "" || path == "metrics" {
			u.Path = "/member"
		}
		m.addresses[i] = u.String()
	}
	switch {
	case len(m.addresses) > 0 && storeCount > 1:
		return fault.OfValue(fault.New("run one dashboard for each store, since members name their elections and not the store",
			"%s needs a single --store", named("member")))
	case m.token != "" && len(m.addresses) == 0:
		return fault.OfUsage(errors.New(named("member-token-file") + " needs --member"))
	case m.token != "":
		var err error
		if m.secret, err = web.Secret(m.token); err != nil {
			return fault.OfValue(fault.New("put the token into the file, alone on one line", "%s %s: %w", named("member-token-file"), m.token, err))
		}
	}
	return nil
}

// client sends the token that the file has at each request, as it may be renewed.
func (m *memberFlags) client() *http.Client {
	if m.token == "" {
		return members.Client(nil)
	}
	read := func(context.Context) (string, error) { return web.Secret(m.token) }
	secret := reread.New(m.secret, read, nil)
	return members.Client(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret.Get(r.Context())) })
}
