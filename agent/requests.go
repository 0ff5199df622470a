package agent

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/record"
)

// campaignRequest begins a campaign. Fields that are left out have the agent's values.
type campaignRequest struct {
	ID                 string            `json:"id"`
	HeartbeatMillis    *millis           `json:"heartbeatMillis"`
	LeaseMillis        *millis           `json:"leaseMillis"`
	StopWithinMillis   *millis           `json:"stopWithinMillis"`
	FinishWithinMillis *millis           `json:"finishWithinMillis"`
	Priority           int               `json:"priority"`
	Address            string            `json:"address"`
	Metadata           map[string]string `json:"metadata"`
}

// The limits of the interval of heartbeats.
const (
	leastHeartbeat = 100 * time.Millisecond
	mostHeartbeat  = time.Hour
)

// config returns the settings of the candidate. Without an ID it gets one of its own: the default
// is the same for all candidates of a process.
func (q *campaignRequest) config(c tenure.Config) tenure.Config {
	if q.ID == "" && c.ID == "" {
		c.ID = c.WithDefaults().ID + "-" + rand.Text()[:8]
	}
	c.ID, c.Address, c.Priority = cmp.Or(q.ID, c.ID), cmp.Or(q.Address, c.Address), cmp.Or(q.Priority, c.Priority)
	if q.Metadata != nil {
		c.Metadata = q.Metadata
	}
	for d, m := range map[*time.Duration]*millis{
		&c.Lease: q.LeaseMillis, &c.StopWithin: q.StopWithinMillis, &c.FinishWithin: q.FinishWithinMillis,
	} {
		if m != nil {
			*d = m.duration()
		}
	}
	return c
}

// interval returns the interval of heartbeats: a third of the lease by default.
func (q *campaignRequest) interval(lease time.Duration) (time.Duration, error) {
	d := max(lease/3, leastHeartbeat)
	if q.HeartbeatMillis != nil {
		d = q.HeartbeatMillis.duration()
	}
	if d < leastHeartbeat || d > mostHeartbeat {
		return 0, fmt.Errorf("heartbeatMillis: %v is not from %v to %v", d, leastHeartbeat, mostHeartbeat)
	}
	return d, nil
}

// local lets only clients of this machine through: over loopback, or a socket of the file system.
func local(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r) {
			refuse(w, &problem{Status: http.StatusForbidden, Title: "The campaign comes from another machine", Detail: r.RemoteAddr,
				Remedy: "run an agent on the machine of the client, or in its pod"})
			return
		}
		h(w, r)
	}
}

// isLocal refuses an address that it cannot read, since handlers in front may have replaced it.
func isLocal(r *http.Request) bool {
	if to, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && to.Network() == "unix" {
		return true
	}
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func (a *Agent) serveCampaign(w http.ResponseWriter, r *http.Request) {
	var q campaignRequest
	if !read(w, r, &q) {
		return
	}
	cfg := q.config(a.cfg.Election)
	e, err := tenure.New(a.store, r.PathValue("election"), cfg)
	if err != nil {
		refuse(w, configProblem(err))
		return
	}
	cfg = cfg.WithDefaults()
	interval, err := q.interval(cfg.Lease)
	if err != nil {
		refuse(w, configProblem(err))
		return
	}
	c := &campaign{agent: a, election: e, interval: interval, lease: cfg.Lease, finishWithin: cfg.FinishWithin}
	if err := c.begin(); err != nil {
		refuse(w, busyProblem(err))
		return
	}
	c.stream(w, r)
}

// of passes a request on to its campaign.
func (a *Agent) of(serve func(http.ResponseWriter, *http.Request, *campaign)) http.HandlerFunc {
	return local(func(w http.ResponseWriter, r *http.Request) {
		c := a.find(r.PathValue("election"), r.PathValue("campaign"))
		if c == nil {
			refuse(w, overProblem(errors.New("the agent knows no campaign of this election and name")))
			return
		}
		serve(w, r, c)
	})
}

func serveHeartbeat(w http.ResponseWriter, r *http.Request, c *campaign) {
	var q struct {
		Number uint64 `json:"number"`
	}
	if !read(w, r, &q) {
		return
	}
	switch s, err := c.heartbeat(q.Number); {
	case s.over != nil:
		refuse(w, overProblem(s.over))
	case err != nil:
		refuse(w, &problem{Status: http.StatusConflict, Title: "The heartbeat does not count", Detail: err.Error(),
			Remedy: "number heartbeats from 1, and send none twice"})
	default:
		answer(w, s.standing())
	}
}

// mayAct is the answer to a client that is about to act.
type mayAct struct {
	MayAct bool `json:"mayAct"`
	standing
}

func serveMayAct(w http.ResponseWriter, r *http.Request, c *campaign) {
	needs, ok := needsOf(w, r)
	if !ok {
		return
	}
	s := c.state()
	if s.over != nil {
		refuse(w, overProblem(s.over))
		return
	}
	answer(w, mayAct{s.mayAct(needs), s.standing()})
}

// needsOf returns the parameter needs: how much time must be left.
func needsOf(w http.ResponseWriter, r *http.Request) (time.Duration, bool) {
	return durationOf(w, r, "needs", math.MaxInt64)
}

// durationOf returns a parameter that is a duration of at most most, or 0 without the parameter.
// Otherwise it answers the request and returns false.
func durationOf(w http.ResponseWriter, r *http.Request, name string, most time.Duration) (time.Duration, bool) {
	text := r.FormValue(name)
	if text == "" {
		return 0, true
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0:
		refuse(w, &problem{Status: http.StatusBadRequest, Title: "The parameter " + name + " is no duration", Detail: text,
			Remedy: "write it with a unit, such as 500ms or 2s"})
	case d > most:
		refuse(w, &problem{Status: http.StatusBadRequest, Title: "The parameter " + name + " is too long", Detail: text,
			Remedy: "ask for at most " + most.String()})
	default:
		return d, true
	}
	return 0, false
}

func serveFinished(w http.ResponseWriter, r *http.Request, c *campaign) {
	var q struct {
		Token uint64 `json:"token"`
	}
	if !read(w, r, &q) {
		return
	}
	if err := c.finished(q.Token); err != nil {
		refuse(w, &problem{Status: http.StatusConflict, Title: "Nothing has ended", Detail: err.Error(),
			Remedy: "send the token of the event elected, once"})
		return
	}
	done(w)
}

func done(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }

func serveHandOver(w http.ResponseWriter, r *http.Request, c *campaign) {
	var q struct {
		To string `json:"to"`
	}
	if !read(w, r, &q) {
		return
	}
	if err := record.CheckName(q.To); err != nil {
		refuse(w, &problem{Status: http.StatusUnprocessableEntity, Title: "No candidate can have this id", Detail: "to " + err.Error(),
			Remedy: "send the id of a candidate, or leave the field out", Errors: []string{"to " + err.Error()}})
		return
	}
	if c.state().token == 0 {
		refuse(w, &problem{Status: http.StatusConflict, Title: "The client does not lead",
			Remedy: "ask the leader; GET /v1/elections/ELECTION names it"})
		return
	}
	if err := c.election.HandOver(r.Context(), q.To); err != nil {
		refuse(w, &problem{Status: http.StatusBadGateway, Title: "The hand-over was not requested", Detail: err.Error(),
			Remedy: "try again while the client leads, when the store answers"})
		return
	}
	done(w)
}

func serveEligible(w http.ResponseWriter, r *http.Request, c *campaign) {
	var q struct {
		Eligible *bool `json:"eligible"`
	}
	if !read(w, r, &q) {
		return
	}
	if q.Eligible == nil {
		refuse(w, &problem{Status: http.StatusBadRequest, Title: "The field eligible is missing",
			Remedy: `send {"eligible": true} or {"eligible": false}`})
		return
	}
	c.setEligible(*q.Eligible)
	done(w)
}

func serveLeave(w http.ResponseWriter, r *http.Request, c *campaign) {
	c.leave()
	select { // the client learns that the lease is free, if the store answers in time
	case <-c.ended:
	case <-r.Context().Done():
	}
	done(w)
}

// leader is the answer to a load balancer.
type leader struct {
	Leader          bool   `json:"leader"`
	RemainingMillis millis `json:"remainingMillis"`
}

func (a *Agent) serveLeader(w http.ResponseWriter, r *http.Request) {
	needs, ok := needsOf(w, r)
	if !ok {
		return
	}
	s, leads := a.leads(r.PathValue("election"), needs)
	status := http.StatusOK
	if !leads {
		status = http.StatusServiceUnavailable
	}
	write(w, status, leader{leads, millisOf(s.remaining)})
}

func (a *Agent) serveFollower(w http.ResponseWriter, r *http.Request) {
	election := r.PathValue("election")
	_, leads := a.leads(election, 0)
	follows := !leads && len(a.campaignsOf(election)) > 0
	status := http.StatusOK
	if !follows {
		status = http.StatusServiceUnavailable
	}
	write(w, status, struct {
		Follower bool `json:"follower"`
	}{follows})
}
