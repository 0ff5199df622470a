package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/members"
)

// Report returns a handler that serves, as a JSON array, the admin.Member of each election that
// the given function returns. A Dashboard in another process reads it: see Source.Members. So do
// tenure status and tenure list, with --member. The handler calls the function for each request,
// and does not authenticate requests.
func Report(elections func() []*tenure.Election) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all := []admin.Member{}
		for _, e := range elections() {
			all = append(all, e.Member())
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_ = json.NewEncoder(w).Encode(all) // an error means that the reader has gone
	})
}

const (
	reportEvery  = 10 * time.Second
	reportWithin = 5 * time.Second
	// If more than maxChanges elections change at once, the change is reported for the source.
	maxChanges = 64
)

// reports holds what the processes of a source say of their candidates: those whose URL is known
// report, and those with candidates in the store answer if the store has a driver.Presence.
type reports struct {
	source string
	client *http.Client
	hub    *hub
	shows  func(election string) bool

	mu        sync.Mutex
	byAddress map[string]report   // by address
	byURL     map[string][]string // the addresses of a URL of Source.Members
	answers   answers
}

// report is the last report of a process.
type report struct {
	at      time.Time
	members []admin.Member
	problem string // why there is no later report
}

func newReports(of *Source, h *hub, shows func(election string) bool) *reports {
	return &reports{
		source: of.Name, client: cmp.Or(of.MembersClient, members.Client(nil)), hub: h, shows: shows,
		byAddress: map[string]report{}, byURL: map[string][]string{},
		answers: answers{questions: make(chan string, maxPending), byElection: map[string]*candidates{}},
	}
}

// run reads the report at a URL every reportEvery until ctx ends. If the URL stands for all
// processes with a name, they are looked up each time.
func (r *reports) run(ctx context.Context, url string) {
	each := time.NewTicker(reportEvery)
	defer each.Stop()
	for ctx.Err() == nil {
		r.readAll(ctx, url)
		select {
		case <-each.C:
		case <-ctx.Done():
		}
	}
}

func (r *reports) readAll(ctx context.Context, url string) {
	bounded, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	take := func(url string, reported []admin.Member, err error) {
		if ctx.Err() == nil {
			r.take(url, reported, err)
		}
	}
	members.ReadAll(bounded, r.client, []string{url}, r.shows, func(url string, at []members.Address, err error) {
		r.keep(url, at, err != nil)
		if err != nil {
			take(url, nil, err)
		}
	}, func(at members.Address, reported []admin.Member, err error) { take(at.URL, reported, err) })
}

// keep forgets the processes of a URL that its name no longer has. If the lookup failed, it keeps
// them, and reports the failure for the URL itself.
func (r *reports) keep(url string, found []members.Address, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := make([]string, 0, len(found))
	for _, one := range found {
		now = append(now, one.URL)
	}
	if failed {
		now = append(now, r.byURL[url]...)
		if !slices.Contains(now, url) {
			now = append(now, url)
		}
	}
	for _, address := range r.byURL[url] {
		if !slices.Contains(now, address) {
			delete(r.byAddress, address)
		}
	}
	r.byURL[url] = now
}

func (r *reports) take(address string, reported []admin.Member, err error) {
	r.mu.Lock()
	was := r.byAddress[address]
	now := report{at: time.Now(), members: reported}
	if err != nil {
		now = report{at: was.at, members: was.members, problem: members.Shortened(err.Error())}
	}
	r.byAddress[address] = now
	r.mu.Unlock()
	changed := changedElections(was.members, reported)
	if now.problem != was.problem || len(changed) > maxChanges {
		r.hub.changed(key{Source: r.source}) // pages of its elections reload, too
		return
	}
	for election := range changed {
		r.hub.changed(key{r.source, election})
	}
}

// changedElections returns the elections in which a member has changed. A change of LastContact
// alone does not count.
func changedElections(was, now []admin.Member) map[string]struct{} {
	before := make(map[admin.Member]struct{}, len(was))
	for _, m := range was {
		m.LastContact = time.Time{}
		before[m] = struct{}{}
	}
	changed := map[string]struct{}{}
	for _, m := range now {
		m.LastContact = time.Time{}
		if _, same := before[m]; !same {
			changed[m.Election] = struct{}{}
		}
	}
	return changed
}

// memberRow is a member on the page.
type memberRow struct {
	admin.Member
	Known string    `json:"known"` // members.Answered or Reported
	From  string    `json:"from,omitempty"`
	At    time.Time `json:"at"`
	Since string    `json:"no_report,omitempty"` // why there is no later report
}

// members returns the members of an election: those that answered, and those that report but did
// not answer.
func (r *reports) members(election string) []memberRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.answers.rows(election)
	for address, report := range r.byAddress {
		for _, m := range report.members {
			if m.Election == election {
				all = append(all, memberRow{m, members.Reported, members.Shown(address), report.at, report.problem})
			}
		}
	}
	all = members.Once(all, func(m memberRow) (known, incarnation string) { return m.Known, m.Incarnation })
	slices.SortFunc(all, func(a, b memberRow) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.From, b.From)) })
	return all
}

// silent returns the processes that do not report, with the reasons.
func (r *reports) silent() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []string{}
	for address, report := range r.byAddress {
		if report.problem != "" {
			all = append(all, members.Shown(address)+": "+report.problem)
		}
	}
	slices.Sort(all)
	return all
}

const (
	askWithin = 2 * time.Second
	// forgetAnswers is how long answers are kept after the last question.
	forgetAnswers = 5 * time.Minute
)

// answers are the answers of candidates over the store. Only the candidates of elections that a
// browser shows are asked.
type answers struct {
	possible   bool // the store has a driver.Presence
	questions  chan string
	byElection map[string]*candidates
}

// candidates is the last answer of the candidates of an election.
type candidates struct {
	asked   time.Time
	at      time.Time
	members []admin.Member
	problem string // why there is no later answer
}

// presenceRow says how the page knows the candidates of an election.
type presenceRow struct {
	Asked   bool   `json:"asked"`             // they can be asked over the store
	Problem string `json:"problem,omitempty"` // why they did not answer the last question
	Reports bool   `json:"reports"`           // some processes report
}

// presence returns how candidates are known, and asks them if that was long ago.
func (r *reports) presence(election string) presenceRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := presenceRow{Asked: r.answers.possible, Reports: len(r.byURL) > 0}
	if !row.Asked {
		return row
	}
	a := r.answers.byElection[election]
	if a != nil {
		row.Problem = a.problem
	}
	if a == nil || time.Since(a.asked) >= reportEvery {
		select {
		case r.answers.questions <- election:
			r.answers.of(election).asked = time.Now()
		default: // later
		}
	}
	return row
}

func (a *answers) of(election string) *candidates {
	if a.byElection[election] == nil {
		a.byElection[election] = &candidates{}
	}
	return a.byElection[election]
}

// rows runs under the lock.
func (a *answers) rows(election string) []memberRow {
	all := []memberRow{}
	if of := a.byElection[election]; of != nil {
		for _, m := range of.members {
			all = append(all, memberRow{Member: m, Known: members.Answered, At: of.at, Since: of.problem})
		}
	}
	return all
}

// ask asks the candidates of elections that browsers show, until ctx ends: when a page is loaded,
// and every reportEvery while it follows the election.
func (r *reports) ask(ctx context.Context, store driver.Presence) {
	r.mu.Lock()
	r.answers.possible = true
	r.mu.Unlock()
	each := time.NewTicker(reportEvery)
	defer each.Stop()
	for {
		select {
		case election := <-r.answers.questions:
			r.askOne(ctx, store, election)
		case <-each.C:
			r.forget()
			for _, election := range r.hub.followed(r.source) {
				r.askOne(ctx, store, election)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *reports) askOne(ctx context.Context, store driver.Presence, election string) {
	bounded, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	texts, err := store.Candidates(bounded, election)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	if errors.Is(err, errors.ErrUnsupported) {
		r.answers.possible = false
	}
	a := r.answers.of(election)
	was, problem := a.members, a.problem
	a.asked, a.problem = time.Now(), ""
	if err != nil {
		a.problem = members.Shortened(err.Error())
	} else {
		a.at, a.members = a.asked, members.Answers(texts, func(of string) bool { return of == election })
	}
	news := a.problem != problem || len(was) != len(a.members) || len(changedElections(was, a.members)) > 0
	r.mu.Unlock()
	if news {
		r.hub.changed(key{r.source, election})
	}
}

func (r *reports) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for election, a := range r.answers.byElection {
		if time.Since(a.asked) > forgetAnswers {
			delete(r.answers.byElection, election)
		}
	}
}

// followed returns the elections of a source that browsers show one by one.
func (h *hub) followed(source string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	once := map[string]bool{}
	var all []string
	for s := range h.streams {
		if s.only != nil && s.only.Source == source && !once[s.only.Name] {
			once[s.only.Name] = true
			all = append(all, s.only.Name)
		}
	}
	return all
}
