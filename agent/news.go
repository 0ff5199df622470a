package agent

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/sse"
)

const (
	// firstLook is how long an answer waits for the first read of an election.
	firstLook = 2 * time.Second
	// waitMost is the longest time for which a client may wait for news.
	waitMost = 5 * time.Minute
	// answerWithin is how long a client may take to read an answer.
	answerWithin = 10 * time.Second
)

// serveElection answers the last sighting of an election, or waits for another version.
func (a *Agent) serveElection(w http.ResponseWriter, r *http.Request) {
	wait, ok := durationOf(w, r, "wait", waitMost)
	if !ok {
		return
	}
	if wait > 0 {
		leave, err := a.observers.wait()
		if err != nil {
			refuse(w, observerProblem(err))
			return
		}
		defer leave()
	}
	one, release, err := a.observers.follow(r.PathValue("election"))
	if err != nil {
		refuse(w, observerProblem(err))
		return
	}
	defer release()
	// the server's limit on the time of an answer is for those that come at once
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + firstLook + answerWithin))
	now := one.await(r.Context(), "", firstLook)
	if since := r.FormValue("since"); wait > 0 && now.Version == since {
		now = one.await(r.Context(), since, wait)
	}
	answer(w, now)
}

// serveNews sends each version of an election as a server-sent event. A slow client gets the latest
// one, not each.
func (a *Agent) serveNews(w http.ResponseWriter, r *http.Request) {
	a.tellNews(w, r, r.PathValue("election"), "standing", func(s *sighting) any { return s })
}

// tellNews sends an event for each version of an election, with the value that show makes of it.
func (a *Agent) tellNews(w http.ResponseWriter, r *http.Request, election, event string, show func(*sighting) any) {
	if r.Method == http.MethodHead { // it would wait for events, which have no head
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, &problem{Status: http.StatusMethodNotAllowed, Title: "A stream has no head", Remedy: "use GET"})
		return
	}
	leave, err := a.observers.wait()
	if err != nil {
		refuse(w, observerProblem(err))
		return
	}
	defer leave()
	one, release, err := a.observers.follow(election)
	if err != nil {
		refuse(w, observerProblem(err))
		return
	}
	defer release()
	out := sse.NewWriter(w)
	out.Raw("retry: 2000\n\n")
	keep := time.NewTicker(keepAliveAfter)
	defer keep.Stop()
	for last := r.Header.Get("Last-Event-ID"); out.Err() == nil; {
		now, changed := one.look()
		if now.Version != "" && now.Version != last {
			last, now.SeenMillis = now.Version, nil // the event may wait in a buffer
			text, err := json.Marshal(show(&now))
			if err != nil {
				panic(err) // it cannot happen: it has only texts and numbers
			}
			out.Event(last, event, text)
			continue
		}
		select {
		case <-changed:
		case <-keep.C:
			out.Raw(": still here\n\n")
		case <-r.Context().Done():
			return
		case <-a.observers.closing:
			return
		}
	}
}

// row is one election in the list.
type row struct {
	sighting
	// Campaigns is how many clients of this agent take part, and Leads whether one of them may act
	// now.
	Campaigns int  `json:"campaigns"`
	Leads     bool `json:"leads"`
}

// serveElections lists the elections of the campaigns, and those that are observed.
func (a *Agent) serveElections(w http.ResponseWriter, _ *http.Request) {
	rows := map[string]*row{}
	for _, one := range a.observers.list() {
		now, _ := one.look()
		rows[now.Election] = &row{sighting: now}
	}
	for _, c := range a.allCampaigns() {
		r := rows[c.election.Name()]
		leads := c.state().mayAct(0)
		if r == nil || r.State == unknown || leads {
			now, _ := sight(c.election, a.clock)
			if r == nil {
				r = &row{}
				rows[now.Election] = r
			}
			r.sighting = now // without a version, which counts what the observer has seen
		}
		r.Campaigns++
		r.Leads = r.Leads || leads
	}
	sorted := slices.AppendSeq(make([]*row, 0, len(rows)), maps.Values(rows))
	slices.SortFunc(sorted, func(a, b *row) int { return strings.Compare(a.Election, b.Election) })
	answer(w, struct {
		Elections []*row `json:"elections"`
	}{sorted})
}

// observerProblem is for news that a client cannot have.
func observerProblem(err error) *problem {
	switch {
	case errors.Is(err, errClosed), errors.Is(err, errObserved), errors.Is(err, errWaiting):
		return &problem{Status: http.StatusServiceUnavailable, Title: "The election cannot be observed now", Detail: err.Error(),
			Remedy: "ask again later, or without wait"}
	}
	return configProblem(err)
}
