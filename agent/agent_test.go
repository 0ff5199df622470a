package agent

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/faults"
)

// TestClientLeads: a client leads for as long as it sends heartbeats, and when it leaves, the next
// one leads at once.
func TestClientLeads(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign(`,"id":"a"`)
		elected := a.waits("elected")
		a.works(5 * lease)
		r := a.mayAct()
		if !r.MayAct || r.Token != elected.Token || r.RemainingMillis <= 0 || r.RemainingMillis > lease.Milliseconds() {
			t.Errorf("the leader may act: %+v", r)
		}
		b := s.campaign(`,"id":"b"`)
		if r := b.mayAct(); r.MayAct || r.Token != 0 || r.RemainingMillis != 0 {
			t.Errorf("the other client may act: %+v", r)
		}
		if r := s.ask(http.MethodGet, "/leader/e", ""); r.Status != http.StatusOK || !r.Leader {
			t.Errorf("/leader: %+v", r)
		}
		began := time.Now()
		if r := a.ask(http.MethodDelete, a.path, ""); r.Status != http.StatusNoContent {
			t.Errorf("leave: %+v", r)
		}
		next := b.waits("elected")
		if took := time.Since(began); took > time.Second || next.Token <= elected.Token {
			t.Errorf("the next client leads after %v with token %d after %d", took, next.Token, elected.Token)
		}
	})
}

// TestMissedHeartbeat (A1, A2, A3): when a heartbeat is missing, the client must not act. The lease
// is neither renewed nor released, and the campaign does not revive.
func TestMissedHeartbeat(t *testing.T) {
	for name, end := range map[string]func(*client, told){
		"it hangs": func(c *client, _ told) { time.Sleep(interval) },
		"it hangs up": func(c *client, _ told) {
			c.hangUp()
			time.Sleep(time.Nanosecond)
		},
		"it reports the end too late": func(c *client, e told) {
			time.Sleep(interval)
			c.finished(e)
		},
		"it leaves too late": func(c *client, _ told) {
			time.Sleep(interval)
			c.ask(http.MethodDelete, c.path, "")
		},
		"it repeats a heartbeat": func(c *client, _ told) {
			time.Sleep(interval - time.Second)
			if r := c.ask(http.MethodPost, c.path+"/heartbeat", `{"number":`+number(c.beats)+`}`); r.Status != http.StatusConflict {
				c.Errorf("a repeated heartbeat: %+v", r)
			}
			time.Sleep(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				a := s.campaign(`,"id":"a"`)
				elected := a.waits("elected")
				a.works(2 * lease)
				a.beat()
				last := time.Now()
				end(a, elected)
				before := s.record()
				if r := a.mayAct(); r.Status != http.StatusGone || r.MayAct {
					t.Errorf("it may act: %+v", r)
				}
				if r := s.ask(http.MethodGet, "/leader/e", ""); r.Status != http.StatusServiceUnavailable {
					t.Errorf("/leader: %+v", r)
				}
				b := s.campaign(`,"id":"a"`) // the id is free
				if r := a.beat(); r.Status != http.StatusGone {
					t.Errorf("a late heartbeat: %+v", r)
				}
				next := b.waits("elected")
				if after := s.record(); after.Term != next.Token || before.Released || before.Term != elected.Token {
					t.Errorf("the record was %+v, and is %+v", before, after)
				}
				if waited := time.Since(last); waited < lease/2 || waited > interval+2*lease {
					t.Errorf("the next client leads %v after the last heartbeat", waited)
				}
			})
		})
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

// TestNeverTold (A3): a claim that is confirmed after its client has gone is released, since the
// client was never told.
func TestNeverTold(t *testing.T) {
	play(t, func(s *scene) {
		// a push would confirm the claim at once
		store := faults.New(&s.store.Polled, 1, faults.Plan{MinDelay: 200 * time.Millisecond, MaxDelay: 200 * time.Millisecond})
		s.serve(store)
		store.Next(faults.Write, faults.DelayAfter)
		a := s.campaign(`,"id":"a"`)
		for s.record().Term == 0 {
			a.beat()
			time.Sleep(10 * time.Millisecond)
		}
		a.hangUp()
		claimed := time.Now()
		s.serve(s.store)
		b := s.campaign(`,"id":"b"`)
		b.waits("elected")
		if waited := time.Since(claimed); waited > time.Second {
			t.Errorf("the next client leads after %v", waited)
		}
	})
}

// TestLostTerm (A5): after a loss the client gets an event, and leads again only when it has
// reported the end of its work.
func TestLostTerm(t *testing.T) {
	play(t, func(s *scene) {
		store := faults.New(s.store, 1, faults.Plan{})
		s.serve(store)
		a := s.campaign(`,"id":"a"`)
		elected := a.waits("elected")
		store.Partition()
		lost := a.waits("lost")
		if r := a.mayAct(); lost.Token != elected.Token || r.MayAct || !r.Finish || r.RemainingMillis != 0 {
			t.Errorf("lost: %+v; it may act: %+v", lost, r)
		}
		store.Heal()
		a.works(4 * lease)
		if got := s.record().Term; got != elected.Token {
			t.Errorf("term %d began before the work of term %d had ended", got, elected.Token)
		}
		if r := a.finished(lost); r.Status != http.StatusNoContent {
			t.Errorf("finished: %+v", r)
		}
		if next := a.waits("elected"); next.Token <= elected.Token {
			t.Errorf("token %d follows %d", next.Token, elected.Token)
		}
	})
}

// TestHandOver: the leader is asked to finish, may act until it reports the end, and follows then.
func TestHandOver(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign(`,"id":"a"`)
		elected := a.waits("elected")
		b := s.campaign(`,"id":"b"`)
		if r := b.ask(http.MethodPost, b.path+"/hand-over", "{}"); r.Status != http.StatusConflict {
			t.Errorf("a follower hands over: %+v", r)
		}
		if r := a.ask(http.MethodPost, a.path+"/hand-over", "{}"); r.Status != http.StatusNoContent {
			t.Fatalf("hand over: %+v", r)
		}
		finish := a.waits("finish")
		if r := a.mayAct(); !r.MayAct || !r.Finish || finish.WithinMillis != 10_000 || finish.Reason == "" {
			t.Errorf("finish: %+v, %+v", finish, r)
		}
		if r := a.finished(elected); r.Status != http.StatusNoContent {
			t.Errorf("finished: %+v", r)
		}
		if r := a.finished(elected); r.Status != http.StatusConflict {
			t.Errorf("finished twice: %+v", r)
		}
		if next := b.waits("elected"); next.Token <= elected.Token {
			t.Errorf("token %d follows %d", next.Token, elected.Token)
		}
		a.beat()
		if r := s.ask(http.MethodGet, "/follower/other", ""); r.Status != http.StatusServiceUnavailable {
			t.Errorf("/follower: %+v", r)
		}
	})
}

// TestOtherAgent (A6): an agent that takes the place of one that was killed waits out its lease.
func TestOtherAgent(t *testing.T) {
	play(t, func(s *scene) {
		store := faults.New(s.store, 1, faults.Plan{})
		s.serve(store)
		a := s.campaign(`,"id":"a"`)
		elected := a.waits("elected")
		store.Partition() // as good as killed
		killed := time.Now()
		s.serve(s.store)
		b := s.campaign(`,"id":"a"`)
		next := b.waits("elected")
		if waited := time.Since(killed); next.Token <= elected.Token || waited < lease/2 {
			t.Errorf("token %d follows %d after %v", next.Token, elected.Token, waited)
		}
	})
}

// TestNotEligible: a client that is not fit to lead finishes, and follows until it is.
func TestNotEligible(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign("")
		elected := a.waits("elected")
		eligible := func(is string) {
			if r := a.ask(http.MethodPut, a.path+"/eligible", `{"eligible":`+is+`}`); r.Status != http.StatusNoContent {
				t.Errorf("eligible: %+v", r)
			}
		}
		eligible("false")
		a.finished(a.waits("finish"))
		a.works(4 * lease)
		if got := s.record(); got.Term != elected.Token || got.Held() {
			t.Errorf("it leads: %+v", got)
		}
		eligible("true")
		elected = a.waits("elected")
		s.agent.SetEligible(false) // the agent's word counts as well, also for a later campaign
		a.finished(a.waits("finish"))
		eligible("true")
		a.works(4 * lease)
		b := s.campaign(`,"id":"b"`)
		b.works(4 * lease)
		if got := s.record(); got.Term != elected.Token || got.Held() {
			t.Errorf("it leads: %+v", got)
		}
		s.agent.SetEligible(true)
		b.waits("elected")
	})
}

// TestBadRequests: each answer names the fault.
func TestBadRequests(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign(`,"id":"a"`)
		for _, c := range []struct {
			method, path, body string
			status             int
			text               string
		}{
			{"POST", "/v1/elections/e/campaign", "{", 400, "EOF"},
			{"POST", "/v1/elections/e/campaign", "{} {}", 400, "more after"},
			{"POST", "/v1/elections/e/campaign", `{"leese":1}`, 400, "leese"},
			{"POST", "/v1/elections/e/campaign", `{"id":"` + strings.Repeat("x", 20<<10) + `"}`, 413, "too large"},
			{"POST", "/v1/elections/e/campaign", `{"heartbeatMillis":-1}`, 422, "heartbeatMillis"},
			{"POST", "/v1/elections/e/campaign", `{"leaseMillis":-1}`, 422, "Lease"},
			{"POST", "/v1/elections/e/campaign", `{"id":"a"}`, 409, "under way"},
			{"POST", "/v1/elections/" + strings.Repeat("x", 2000) + "/campaign", `{}`, 422, "name"},
			{"POST", "/v1/elections/e/campaigns/unknown/heartbeat", `{"number":1}`, 410, "knows no campaign"},
			{"POST", strings.Replace(a.path, "/e/", "/other/", 1) + "/heartbeat", `{"number":1}`, 410, "knows no campaign"},
			{"POST", a.path + "/heartbeat", `{}`, 409, "0 after 0"},
			{"GET", a.path + "/may-act?needs=2", "", 400, "2"},
			{"GET", a.path + "/may-act?needs=-2s", "", 400, "-2s"},
			{"POST", a.path + "/finished", `{"token":99}`, 409, "no open term"},
			{"PUT", a.path + "/eligible", `{}`, 400, ""},
			{"POST", a.path + "/hand-over", `{"to":"` + strings.Repeat("x", 300) + `"}`, 422, "to has 300 bytes"},
			{"POST", "/v1/elections/a%2F..%2Fb/campaign", `{}`, 404, "cannot be served"},
			{"POST", "/v1/elections/a%2F%2Fb/campaign", `{}`, 404, "cannot be served"},
			{"GET", "/leader/a%2F.", "", 404, "cannot be served"},
			{"GET", "/v1/elections/", "", 404, "no such request"},
			{"GET", "/leader/e?needs=soon", "", 400, "soon"},
			{"GET", "/", "", 404, "GET /"},
			{"GET", "/v1/elections/e/campaign", "", 404, "GET /v1/elections/e/campaign"},
			{"GET", "/v1/elections/" + strings.Repeat("x", 2000), "", 422, "name"},
			{"GET", "/v1/elections/e?wait=2", "", 400, "2"},
			{"GET", "/v1/elections/e?wait=6m", "", 400, "too long"},
			{"GET", "/v1/elections/" + strings.Repeat("x", 2000) + "/events", "", 422, "name"},
		} {
			r := s.ask(c.method, c.path, c.body)
			if r.Status != c.status || r.Title == "" || r.Remedy == "" || !strings.Contains(r.Detail+r.Title, c.text) {
				t.Errorf("%s %.60s %.40s: %+v", c.method, c.path, c.body, r)
			}
		}
	})
}

// TestMayActNeeds: less time than is needed is a no.
func TestMayActNeeds(t *testing.T) {
	play(t, func(s *scene) {
		a := s.campaign("")
		a.waits("elected")
		for needs, want := range map[string]bool{"1s": true, "15s": false} {
			if r := a.ask(http.MethodGet, a.path+"/may-act?needs="+needs, ""); r.MayAct != want || r.Token == 0 {
				t.Errorf("needs %s: %+v", needs, r)
			}
			if r := s.ask(http.MethodGet, "/leader/e?needs="+needs, ""); r.Leader != want {
				t.Errorf("/leader needs %s: %+v", needs, r)
			}
		}
	})
}

// TestRequestsAfterTheEnd (A2, A3): a request that found its campaign just before that was over has
// no effect on the lease.
func TestRequestsAfterTheEnd(t *testing.T) {
	for name, ask := range map[string]func(c *campaign, token uint64){
		"finished":  func(c *campaign, token uint64) { _ = c.finished(token) },
		"leave":     func(c *campaign, _ uint64) { c.leave() },
		"heartbeat": func(c *campaign, _ uint64) { _, _ = c.heartbeat(1000) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				a := s.campaign("")
				elected := a.waits("elected")
				found := s.agent.campaignsOf("e")[0]
				time.Sleep(interval)
				ask(found, elected.Token)
				time.Sleep(time.Second)
				if r := s.record(); r.Released || found.state().mayAct(0) {
					t.Errorf("the record is %+v, the state %+v", r, found.state())
				}
				if w := found.grant(found.told.term); w != nil {
					t.Error("it is granted a term")
				}
			})
		})
	}
}
