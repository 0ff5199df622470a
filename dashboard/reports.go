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
	"sync"
	"time"
)

const (
	reportEach   = 10 * time.Second
	reportWithin = 5 * time.Second
	maxReport    = 1 << 20 // of one process, in bytes
)

// reports are what the processes of a source say of themselves.
type reports struct {
	source string
	client *http.Client
	hub    *hub

	mu sync.Mutex
	of map[string]report // by address
}

// report is the last of a process.
type report struct {
	at      time.Time
	members []Member
	problem string // why there is none since
}

func newReports(of *Source, h *hub) *reports {
	return &reports{source: of.Name, client: cmp.Or(of.MembersClient, http.DefaultClient), hub: h, of: map[string]report{}}
}

// run asks a process again and again until ctx ends.
func (r *reports) run(ctx context.Context, address string) {
	each := time.NewTicker(reportEach)
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

func (r *reports) ask(ctx context.Context, address string) (all []Member, err error) {
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
		return nil, errors.New(answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxReport)).Decode(&all); err != nil {
		return nil, fmt.Errorf("it is no report: %w", err)
	}
	return all, nil
}

// reason leaves out the address, which may hold a password.
func reason(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func (r *reports) take(address string, members []Member, err error) {
	r.mu.Lock()
	was := r.of[address]
	now := report{at: time.Now(), members: members}
	if err != nil {
		now = report{at: was.at, members: was.members, problem: err.Error()}
	}
	r.of[address] = now
	r.mu.Unlock()
	if now.problem != was.problem {
		r.hub.changed(key{Source: r.source})
	}
	for _, m := range members {
		if !slices.ContainsFunc(was.members, m.same) || now.problem != was.problem {
			r.hub.changed(key{r.source, m.Election})
		}
	}
}

// same: contacts alone are no news.
func (m Member) same(other Member) bool {
	m.LastContact, other.LastContact = time.Time{}, time.Time{}
	return m == other
}

// memberRow is a member as the page gets it.
type memberRow struct {
	Member
	From  string    `json:"from"`
	At    time.Time `json:"at"`
	Since string    `json:"no_report,omitempty"` // why there is none since
}

// members returns those of an election.
func (r *reports) members(election string) []memberRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []memberRow{}
	for address, report := range r.of {
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
	for address, report := range r.of {
		if report.problem != "" {
			all = append(all, shownAddress(address)+": "+report.problem)
		}
	}
	slices.Sort(all)
	return all
}

// shownAddress has no password.
func shownAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User = nil
	return u.String()
}
