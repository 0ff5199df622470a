package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/members"
)

const (
	reportEvery  = 10 * time.Second
	reportWithin = 5 * time.Second
	// maxAsking is how many processes with one name are asked at once.
	maxAsking = 32
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
	members []tenure.Member
	problem string // why there is no later report
}

func newReports(of *Source, h *hub, shows func(election string) bool) *reports {
	return &reports{
		source: of.Name, client: cmp.Or(of.MembersClient, members.Client(nil)), hub: h, shows: shows,
		byAddress: map[string]report{}, byURL: map[string][]string{}, answers: newAnswers(),
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
	found, err := members.Resolve(bounded, url)
	if err != nil {
		found = nil
	}
	r.keep(url, found, err != nil)
	if err != nil && ctx.Err() == nil {
		r.take(url, nil, err)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, maxAsking)
	for _, one := range found {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			reported, err := members.Read(bounded, r.client, one, r.shows)
			if ctx.Err() == nil {
				r.take(one.URL, reported, err)
			}
		})
	}
	all.Wait()
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

func (r *reports) take(address string, reported []tenure.Member, err error) {
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
func changedElections(was, now []tenure.Member) map[string]struct{} {
	before := make(map[tenure.Member]struct{}, len(was))
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
	tenure.Member
	Known string    `json:"known"` // knownAnswered or knownReported
	From  string    `json:"from,omitempty"`
	At    time.Time `json:"at"`
	Since string    `json:"no_report,omitempty"` // why there is no later report
}

// The ways in which a candidate is known, besides the terms that it has led.
const (
	knownAnswered = "answered"
	knownReported = "reported"
)

// members returns the members of an election: those that answered, and those that report but did
// not answer.
func (r *reports) members(election string) []memberRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.answers.rows(election)
	answered := map[string]bool{}
	for _, m := range all {
		answered[m.Incarnation] = true
	}
	for address, report := range r.byAddress {
		for _, m := range report.members {
			if m.Election == election && (m.Incarnation == "" || !answered[m.Incarnation]) {
				all = append(all, memberRow{m, knownReported, members.Shown(address), report.at, report.problem})
			}
		}
	}
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
