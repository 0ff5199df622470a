//go:build integration && unix

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/internal/records"
)

func TestHandOver(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.says("hand-over").must(t, 3, `^error: election "billing" in nats://\*\*\*@.*/ELECTIONS: nobody leads$`, `^hint: run tenure status to see why`)
	first := h.join(tenure.Config{ID: "node-1"}, nil)
	h.await(first, leads)
	h.says("hand-over", "--wait", "1h").must(t, 1, `^node-1, who leads in term \d+, is asked to hand over; waiting up to 1h0m0s$`, `^the leader is still node-1, in term \d+$`,
		`^error: node-1 leads again, in term \d+: no other candidate has claimed$`, `^hint: check that another candidate runs`)
	h.await(first, leads)
	others := []*member{h.join(tenure.Config{ID: "node-2"}, nil), h.join(tenure.Config{ID: "node-3"}, nil)}
	for _, m := range others {
		h.await(m, follows("node-1"))
	}
	h.handsOver("node-3").must(t, 0, `^node-[12], who leads in term \d+, is asked to hand over to node-3; waiting up to .*$`, `^node-3 leads in term \d+, .* later$`)
	h.await(others[1], leads)
	h.says("hand-over", "--to", "node-9", "--force", "--wait", "1h").must(t, 1, `^error: node-[12] leads now, in term \d+, instead of node-9$`, `^hint: check that node-9 runs`)
}

// A name that nobody has does not empty the seat. A candidate that answers that it is not eligible
// is not even asked.
func TestHandOverThatNobodyAccepts(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	quick := tenure.Config{Lease: 3 * time.Second}
	quick.ID = "node-1"
	first := h.join(quick, nil)
	term := h.await(first, leads).Term
	quick.ID = "node-2"
	second := h.join(quick, nil)
	h.await(second, follows("node-1"))
	second.SetEligible(false)
	h.says("hand-over", "--to", "node-2", "--wait", "1h").must(t, 1,
		`^error: node-2 answers that it is not eligible, so the leader is not asked$`, `^hint: make it eligible; --force asks`)
	if now := records.Read(h.entry()); now.Wish() != nil {
		t.Errorf("the record has %+v", now.Wish())
	}
	h.says("hand-over", "--to", "node-9", "--wait", "1ms").must(t, 1,
		`^error: node-9 has not accepted within 1ms, so node-1 still leads in term \d+$`, `^hint: it may still accept, until two leases after`)
	h.says("hand-over", "--to", "node-9", "--wait", "1h").must(t, 1,
		`^node-1, who leads in term \d+, is asked to hand over to node-9; waiting up to 1h0m0s$`,
		`^error: node-9 has not accepted, so node-1 goes on leading in term \d+$`, `^hint: check that node-9 runs, .*; --force asks`)
	if s := first.Status(); s.State != tenure.StateLeader || s.Term != term {
		t.Errorf("node-1 is %s in term %d", s.State, s.Term)
	}
}

func TestHandOverReportsEachStepInJSON(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	first := h.join(tenure.Config{ID: "node-1"}, nil)
	h.await(first, leads)
	second := h.join(tenure.Config{ID: "node-2"}, nil)
	h.await(second, follows("node-1"))
	r := h.handsOver("node-2", "--json")
	want := `{"time":~,"event":"asked","election":"billing","id":~,"term":~,"leader":"node-1","to":"node-2"}` + "\n" +
		`{"time":~,"event":"moved","election":"billing","id":~,"term":~,"leader":"node-2","from":"node-1","millis":~}` + "\n"
	if got := terms.ReplaceAllString(r.golden(), "${1}~"); r.code != 0 || got != want {
		t.Errorf("got %d\n%swant\n%s", r.code, got, want)
	}
}

// If a leader were asked to hand over to itself, it would leave. Here the record either still has
// the request or is no longer of this term. Its version proves nothing, because the leader may
// renew at any time.
func TestHandOverToTheLeaderChangesNothing(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	first := h.join(tenure.Config{ID: "node-1"}, nil)
	term := h.await(first, leads).Term
	h.await(h.join(tenure.Config{ID: "node-2"}, nil), follows("node-1"))
	h.says("hand-over", "--to", "node-1").must(t, 0, `^the leader is still node-1, in term \d+$`)
	r := h.says("hand-over", "--to", "node-1", "--json")
	want := `{"time":~,"event":"unchanged","election":"billing","id":~,"term":~,"leader":"node-1"}` + "\n"
	if got := terms.ReplaceAllString(r.golden(), "${1}~"); r.code != 0 || got != want {
		t.Errorf("got %d\n%swant\n%s", r.code, got, want)
	}
	if now := records.Read(h.entry()); !now.Held() || now.Leader != "node-1" || now.Term != term || now.Wish() != nil {
		t.Errorf("record %+v, want node-1 in term %d and no request", now, term)
	}
	if now := h.await(first, leads).Term; now != term {
		t.Errorf("term %d after %d", now, term)
	}
}

// A leader without other candidates leads again. It also does if a successor is named by force that
// is not there.
func TestHandOverWithoutEffectInJSON(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.await(h.join(tenure.Config{ID: "node-1"}, nil), leads)
	for _, to := range []string{"", "node-9"} {
		flags := []string{"--wait", "1h", "--json"}
		if to != "" {
			flags = append(flags, "--to", to, "--force")
		}
		r := h.says("hand-over", flags...)
		want := `{"time":~,"event":"asked","election":"billing","id":~,"term":~,"leader":"node-1","to":"` + to + `"}` + "\n" +
			`{"time":~,"event":"unchanged","election":"billing","id":~,"term":~,"leader":"node-1"}` + "\n"
		if got := terms.ReplaceAllString(r.golden(), "${1}~"); r.code != 1 || got != want {
			t.Errorf("to %q: got %d\n%swant\n%s", to, r.code, got, want)
		}
	}
}

// hand-over waits for work that does not finish at once, unless a flag forbids it.
func TestHandOverOfSlowWork(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	finish := make(chan struct{})
	m := h.join(tenure.Config{ID: "node-1", FinishWithin: time.Hour}, func(context.Context, *tenure.Term) error { <-finish; return nil })
	t.Cleanup(func() { close(finish) })
	h.await(m, leads)
	h.says("hand-over", "--wait", "100ms").must(t, 1, `^error: node-1 still leads in term \d+ after 100ms$`, `^hint: it is asked`)
	h.says("hand-over", "--wait", "0").must(t, 0, `^node-1, who leads in term \d+, is asked to hand over$`)
}

// The whole command takes --wait at most. A dead leader did not leave.
func TestHandOverOfADeadLeader(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(record("node-1", 7, time.Second, time.Now().Add(-time.Hour), ""))
	h.says("hand-over", "--wait", "1ms").must(t, 1, `^node-1, not confirmed as the leader of term 7, is asked to hand over; waiting up to 1ms$`,
		`^error: node-1 did not answer: it has not renewed its lease since it was asked, .* ago$`, `^hint: it may be dead or cut off`)
	h.says("hand-over", "--wait", "5s").must(t, 3, `^error: node-1 did not answer: its lease ran out without a renewal since it was asked, .* ago, and no candidate has followed it$`,
		`^hint: it is dead or cut off`)
}

func TestIgnoredRequest(t *testing.T) {
	at := time.Now()
	m := move{from: tenure.Leader{ID: "node-1", Term: 7}, asked: at, written: at}
	asked := admin.Record{Kind: admin.Held, Term: 7, Lease: 4 * time.Second, Updated: at}
	renewed, released, next := asked, asked, asked
	renewed.Updated, released.Kind, next.Term = at.Add(time.Millisecond), admin.Released, 8
	for _, c := range []struct {
		why    string
		record admin.Record
		since  time.Duration
		want   bool
	}{
		{"no renewal came", asked, 3 * time.Second, true},
		{"none is due yet", asked, time.Second, false},
		{"it renewed", renewed, 3 * time.Second, false},
		{"it released", released, 3 * time.Second, false},
		{"the next leader is asked", next, 3 * time.Second, false},
	} {
		if got := m.ignored(&tenure.Status{Leader: m.from, Record: c.record}, c.since); got != c.want {
			t.Errorf("%s: %v", c.why, got)
		}
	}
	err := unanswered(&tenure.Status{Leader: m.from, Record: asked}, "node-1", 3*time.Second)
	if got := err.Error(); got != "node-1 did not answer: it has not renewed its lease since it was asked, 3s ago" {
		t.Errorf("says %s", got)
	}
}

// Where nothing is pushed, the acceptance of an offer may be overwritten by the release before it
// is seen. Then the offer was not refused.
func TestVoidOffer(t *testing.T) {
	offer := admin.Record{Kind: admin.Held, Term: 7, Request: &admin.Request{To: "node-2", Offer: true}}
	accepted, without, released, next := offer, offer, offer, offer
	accepted.Request = &admin.Request{To: "node-2"}
	without.Request, released.Request, next.Request = nil, nil, nil
	released.Kind, next.Term = admin.Released, 8
	for _, c := range []struct {
		why  string
		seen []admin.Record
		want bool
	}{
		{"the offer is there", []admin.Record{offer}, false},
		{"the leader goes on without it", []admin.Record{offer, without}, true},
		{"it was not seen yet", []admin.Record{without}, false},
		{"it was accepted", []admin.Record{offer, accepted, without}, false},
		{"the leader has left", []admin.Record{offer, released}, false},
		{"another one leads", []admin.Record{offer, next}, false},
	} {
		m := move{from: tenure.Leader{ID: "node-1", Term: 7}}
		var last tenure.Status
		for _, r := range c.seen {
			last = tenure.Status{Known: true, Record: r}
			m.see(last)
		}
		if m.void(last) != c.want {
			t.Errorf("%s: %v", c.why, !c.want)
		}
	}
}

// An ID with a line break does not start a new line.
func TestHandOverOfALeaderWithALineBreakInItsID(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(strings.Replace(record("LEADER", 7, time.Hour, time.Now(), ""), "LEADER", `a\nhint: b`, 1))
	h.says("hand-over", "--wait", "1ms").must(t, 1, `^error: a hint: b still leads in term 7 after 1ms$`, `^hint: it is asked`)
}

// The leader releases and there is no successor. On a slow machine the leader may need longer.
func TestHandOverWithoutASuccessor(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	ineligible := make(chan func(), 1)
	m := h.join(tenure.Config{ID: "node-1", Tuning: tenure.Tuning{Renew: 500 * time.Millisecond}}, func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done()
		(<-ineligible)() // so that it does not lead again
		return nil
	})
	for wait := time.Second; ; wait *= 2 {
		ineligible <- func() { m.SetEligible(false) }
		m.SetEligible(true)
		h.await(m, leads)
		r := h.says("hand-over", "--wait", wait.String())
		if r.code == 3 {
			r.must(t, 3, `^error: node-1 has left, and no candidate has followed it within \d+`)
			return
		}
		r.must(t, 1, `^error: node-1 still leads in term \d+ after`)
		h.await(m, func(s tenure.Status) bool { return s.State != tenure.StateLeader })
	}
}

func TestHandOverRefusesAForeignRecord(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put("node-1")
	h.says("hand-over").must(t, 1, `^error: .*key holds bytes that are not an election record`, `^hint: find out which program wrote them`)
}
