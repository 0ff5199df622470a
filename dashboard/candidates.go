package dashboard

import (
	"context"
	"errors"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/members"
)

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
	members []tenure.Member
	problem string // why there is no later answer
}

func newAnswers() answers {
	return answers{questions: make(chan string, maxPending), byElection: map[string]*candidates{}}
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
			all = append(all, memberRow{Member: m, Known: knownAnswered, At: of.at, Since: of.problem})
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
