package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/record"
)

const (
	reportEvery  = 10 * time.Second
	reportWithin = 5 * time.Second
	// The limits of the report of one process, which may be faulty. If more than maxChanges
	// elections change at once, the change is reported for the source.
	maxReport  = 1 << 20 // in bytes
	maxMembers = 10_000
	maxReason  = 1 << 10 // in bytes
	maxChanges = 64
)

// reports holds the reports of the processes of a source.
type reports struct {
	source string
	client *http.Client
	hub    *hub
	shows  func(election string) bool

	mu        sync.Mutex
	byAddress map[string]report // by address
}

// report is the last report of a process.
type report struct {
	at      time.Time
	members []Member
	problem string // why there is no later report
}

func newReports(of *Source, h *hub, shows func(election string) bool) *reports {
	return &reports{source: of.Name, client: cmp.Or(of.MembersClient, &http.Client{CheckRedirect: refuseRedirect}), hub: h, shows: shows, byAddress: map[string]report{}}
}

// run reads the report of a process every reportEvery until ctx ends.
func (r *reports) run(ctx context.Context, address string) {
	each := time.NewTicker(reportEvery)
	defer each.Stop()
	for ctx.Err() == nil {
		members, err := r.ask(ctx, address)
		if ctx.Err() == nil {
			r.take(address, members, err)
		}
		select {
		case <-each.C:
		case <-ctx.Done():
		}
	}
}

func (r *reports) ask(ctx context.Context, address string) ([]Member, error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", http.StatusText(answer.StatusCode))))
	}
	return r.read(json.NewDecoder(io.LimitReader(answer.Body, maxReport)))
}

// read reads a report. Members of elections that the source does not show are left out.
func (r *reports) read(from *json.Decoder) ([]Member, error) {
	if begin, err := from.Token(); err != nil || begin != json.Delim('[') {
		return nil, errors.New("it is no report: it does not begin with [")
	}
	var all []Member
	for from.More() {
		var m Member
		if err := from.Decode(&m); err != nil {
			return nil, fmt.Errorf("it is no report: %w", err)
		}
		if !r.shows(m.Election) {
			continue
		}
		if err := errors.Join(record.CheckName(m.ID), record.CheckName(string(m.State))); err != nil {
			return nil, fmt.Errorf("it is no report: an ID or a state %w", err)
		}
		m.Problem = truncateReason(m.Problem)
		if all = append(all, m); len(all) > maxMembers {
			return nil, fmt.Errorf("it reports more than %d members", maxMembers)
		}
	}
	if _, err := from.Token(); err != nil {
		return nil, fmt.Errorf("it is no report: %w", err)
	}
	return all, nil
}

// truncateReason shortens a reason that another process gave.
func truncateReason(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// reason returns the error without the address, which may hold a password.
func reason(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func (r *reports) take(address string, members []Member, err error) {
	r.mu.Lock()
	was := r.byAddress[address]
	now := report{at: time.Now(), members: members}
	if err != nil {
		now = report{at: was.at, members: was.members, problem: truncateReason(err.Error())}
	}
	r.byAddress[address] = now
	r.mu.Unlock()
	changed := changedElections(was.members, members)
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
func changedElections(was, now []Member) map[string]struct{} {
	before := make(map[Member]struct{}, len(was))
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
	Member
	From  string    `json:"from"`
	At    time.Time `json:"at"`
	Since string    `json:"no_report,omitempty"` // why there is no later report
}

// members returns the members of an election.
func (r *reports) members(election string) []memberRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []memberRow{}
	for address, report := range r.byAddress {
		for _, m := range report.members {
			if m.Election == election {
				all = append(all, memberRow{m, shownAddress(address), report.at, report.problem})
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
			all = append(all, shownAddress(address)+": "+report.problem)
		}
	}
	slices.Sort(all)
	return all
}

// refuseRedirect refuses redirects, with which a member could make the dashboard request any
// address.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// shownAddress returns the address without its user, password and query.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
