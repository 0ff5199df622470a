//go:build integration && unix

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/records"
)

func TestHandOver(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.says("hand-over").Must(t, 3, `^error: election "billing" in sqlite:\S*elections\.db: nobody leads$`, `^hint: run tenure status to see why`)
	first := h.join(tenure.Config{ID: "node-1"}, nil)
	h.await(first, leads)
	h.says("hand-over", "--wait", "1h").Must(t, 1, `^node-1, who leads in term \d+, is asked to hand over; waiting up to 1h0m0s$`, `^the leader is still node-1, in term \d+$`,
		`^error: node-1 leads again, in term \d+: no other candidate has claimed$`, `^hint: check that another candidate runs`)
	h.await(first, leads)
	others := []*member{h.join(tenure.Config{ID: "node-2"}, nil), h.join(tenure.Config{ID: "node-3"}, nil)}
	for _, m := range others {
		h.await(m, follows("node-1"))
	}
	h.handsOver("node-3").Must(t, 0, `^node-[12], who leads in term \d+, is asked to hand over to node-3; waiting up to .*$`, `^node-3 leads in term \d+, .* later$`)
	h.await(others[1], leads)
	h.says("hand-over", "--to", "node-9", "--force", "--wait", "1h").Must(t, 1, `^error: node-[12] leads now, in term \d+, instead of node-9$`, `^hint: check that node-9 runs`)
}

// A name that nobody has does not empty the seat.
func TestHandOverThatNobodyAccepts(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	quick := tenure.Config{Lease: 3 * time.Second}
	quick.ID = "node-1"
	first := h.join(quick, nil)
	term := h.await(first, leads).Term
	quick.ID = "node-2"
	second := h.join(quick, nil)
	h.await(second, follows("node-1"))
	h.says("hand-over", "--to", "node-9", "--wait", "1ms").Must(t, 1,
		`^error: node-9 has not accepted within 1ms, so node-1 still leads in term \d+$`, `^hint: it may still accept, until two leases after`)
	h.says("hand-over", "--to", "node-9", "--wait", "1h").Must(t, 1,
		`^node-1, who leads in term \d+, is asked to hand over to node-9; waiting up to 1h0m0s$`,
		`^error: node-9 has not accepted, so node-1 goes on leading in term \d+$`, `^hint: check that node-9 runs, .*; --force asks`)
	if s := first.Status(); s.State != tenure.StateLeader || s.Term != term {
		t.Errorf("node-1 is %s in term %d", s.State, s.Term)
	}
}

// A leader without other candidates leads again. It also does if a successor is named by force that
// is not there. If a leader were asked to hand over to itself, it would leave: then the record
// either still has the request or is no longer of this term. Its version proves nothing, because
// the leader may renew at any time.
func TestHandOverReportsEachStepInJSON(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	says := func(r program.Result, code int, steps ...string) {
		t.Helper()
		want := ""
		for _, step := range steps {
			event, more, _ := strings.Cut(step, " ")
			want += `{"time":~,"event":"` + event + `","election":"billing","id":~,"term":~,"leader":` + more + "}\n"
		}
		if got := terms.ReplaceAllString(golden(r), "${1}~"); r.Code != code || got != want {
			t.Errorf("got %d\n%swant\n%s", r.Code, got, want)
		}
	}
	first := h.join(tenure.Config{ID: "node-1"}, nil)
	h.await(first, leads)
	says(h.says("hand-over", "--wait", "1h", "--json"), 1, `asked "node-1","to":""`, `unchanged "node-1"`)
	says(h.says("hand-over", "--wait", "1h", "--json", "--to", "node-9", "--force"), 1, `asked "node-1","to":"node-9"`, `unchanged "node-1"`)
	term := h.await(first, leads).Term
	second := h.join(tenure.Config{ID: "node-2"}, nil)
	h.await(second, follows("node-1"))
	h.says("hand-over", "--to", "node-1").Must(t, 0, `^the leader is still node-1, in term \d+$`)
	says(h.says("hand-over", "--to", "node-1", "--json"), 0, `unchanged "node-1"`)
	if now := records.Read(h.entry()); !now.Held() || now.Leader != "node-1" || now.Term != term || now.Wish() != nil {
		t.Errorf("record %+v, want node-1 in term %d and no request", now, term)
	}
	if now := h.await(first, leads).Term; now != term {
		t.Errorf("term %d after %d", now, term)
	}
	says(h.handsOver("node-2", "--json"), 0, `asked "node-1","to":"node-2"`, `moved "node-2","from":"node-1","millis":~`)
}

// The whole command takes --wait at most. A dead leader did not leave.
func TestHandOverOfARecord(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, c := range []struct {
		why, value, wait string
		code             int
		says             []string
	}{
		{"no record of an election", "node-1", "1h", 1, []string{`^error: .*key holds bytes that are not an election record`, `^hint: find out which program wrote them`}},
		{"an ID with a line break does not start a new line", strings.Replace(record("LEADER", 7, time.Hour, time.Now(), ""), "LEADER", `a\nhint: b`, 1), "1ms", 1,
			[]string{`^error: a hint: b still leads in term 7 after 1ms$`, `^hint: it is asked`}},
		{"a dead leader", record("node-1", 7, time.Second, time.Now().Add(-time.Hour), ""), "1ms", 1, []string{
			`^node-1, not confirmed as the leader of term 7, is asked to hand over; waiting up to 1ms$`,
			`^error: node-1 did not answer: it has not renewed its lease since it was asked, .* ago$`, `^hint: it may be dead or cut off`}},
		{"a dead leader, for longer than its lease", record("node-1", 7, time.Second, time.Now().Add(-time.Hour), ""), "5s", 3, []string{
			`^error: node-1 did not answer: its lease ran out without a renewal since it was asked, .* ago, and no candidate has followed it$`,
			`^hint: it is dead or cut off`}},
	} {
		t.Run(c.why, func(t *testing.T) {
			h.put(c.value)
			h.says("hand-over", "--wait", c.wait).Must(t, c.code, c.says...)
		})
	}
}

// hand-over waits for work that does not finish at once, unless a flag forbids it.
func TestHandOverOfSlowWork(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	finish := make(chan struct{})
	m := h.join(tenure.Config{ID: "node-1", FinishWithin: time.Hour}, func(context.Context, *tenure.Term) error { <-finish; return nil })
	t.Cleanup(func() { close(finish) })
	h.await(m, leads)
	h.says("hand-over", "--wait", "100ms").Must(t, 1, `^error: node-1 still leads in term \d+ after 100ms$`, `^hint: it is asked`)
	h.says("hand-over", "--wait", "0").Must(t, 0, `^node-1, who leads in term \d+, is asked to hand over$`)
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

// The leader releases and there is no successor. On a slow machine the leader may need longer.
func TestHandOverWithoutASuccessor(t *testing.T) {
	t.Parallel()
	h := newHome(t)
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
		if r.Code == 3 {
			r.Must(t, 3, `^error: node-1 has left, and no candidate has followed it within \d+`)
			return
		}
		r.Must(t, 1, `^error: node-1 still leads in term \d+ after`)
		h.await(m, func(s tenure.Status) bool { return s.State != tenure.StateLeader })
	}
}

func TestResetReplacesAForeignRecord(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put("node-1 \x1b[31m" + strings.Repeat("x", 100))
	h.says("reset").Must(t, 2, `^error: --force is missing: reset replaces a foreign or malformed record`, `^hint: look at the record with tenure status first`)
	h.says("status").Must(t, 1, `^record    foreign$`)
	h.says("reset", "--force", "--lease", "1s").Must(t, 0, `^was  foreign, 112 bytes: node-1 \\x1b\[31mx{52}\.\.\.$`,
		`^     key holds bytes that are not an election record`, `^now  a vacant record after term \d+: no candidate can be elected for at least 1s$`)
	first := h.join(tenure.Config{ID: "node-0", Lease: time.Second}, nil) // it waits that long
	h.await(first, leads)
	first.leave()
	m := h.join(tenure.Config{ID: "node-1", Lease: time.Minute}, nil)
	h.await(m, leads)
	h.says("reset", "--force").Must(t, 1, `^error: .*there is nothing to reset: the record is held$`, `^hint: to have another leader, ask the present one with tenure hand-over$`)
	h.says("status").Must(t, 0, `^leader    node-1 in term \d+$`)
	m.leave()
	h.says("reset", "--force").Must(t, 1, `^error: .*there is nothing to reset: the record is released$`, `^hint: nothing has to be done`)
}

func TestResetShowsTheReplacedRecordInJSON(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	broken := `{"leaderID":"node-1","term":7,"leaseMillis":20000,"incarnation":"i"}`
	h.put(broken)
	want := `{"time":~,"event":"reset","election":"billing","id":~,"term":~,"was":"malformed","bytes":68,"beginning":` +
		`"{\"leaderID\":\"node-1\",\"term\":7,\"leaseMillis\":20000,\"incarnation\":","problem":"key holds a malformed election record: no nonce","waitMillis":20000}` + "\n"
	r := h.says("reset", "--force", "--json")
	if r.Code != 0 || golden(r) != want {
		t.Errorf("got %d\n%s%swant\n%s", r.Code, golden(r), r.Errs, want)
	}
	h.says("status").Must(t, 3, `^record    vacant after term \d{10,}; candidates wait at least 20s before they claim$`)
}

// No claim can exceed the last possible term. Such a record is damaged, and an operator must reset
// it.
func TestResetReplacesATermAboveTheLimit(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put(`{"leaderID":"node-1","term":9007199254740991,"leaseMillis":2000,"incarnation":"i","nonce":"n"}`)
	const problem = `key holds a malformed election record: term is 9007199254740991; credible terms are less than 2\^40 above \d+ here$`
	h.says("status").Must(t, 1, `^record    malformed$`, problem, `^hint: .*tenure reset --force`)
	h.says("reset", "--force", "--lease", "1s").Must(t, 0, `^was  malformed, \d+ bytes`, problem,
		`^now  a vacant record after term \d{16}: no candidate can be elected for at least 2s$`)
	m := h.join(tenure.Config{ID: "node-0", Lease: time.Second}, nil)
	if l := h.await(m, leads); l.Term >= 1<<52 {
		t.Errorf("term %d", l.Term)
	}
	m.leave()
}

func TestResetRefusesAnAbsentRecord(t *testing.T) {
	t.Parallel()
	newHome(t).says("reset", "--force").Must(t, 1, `the record is absent$`)
}

func TestEndLeaseLetsTheNextCandidateClaim(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put(`{"leaderID":"node-1","term":7,"leaseMillis":3000000,"incarnation":"i","seq":9,"nonce":"n"}`)
	waits := h.join(tenure.Config{ID: "node-0", Lease: time.Second}, nil)
	for _, wrong := range [][]string{{}, {"--no-leader", "other"}} {
		h.says("end-lease", wrong...).Must(t, 2, `^error: --no-leader is "(|other)": it must be the name of the election, "billing"$`, `^hint: stop every process`)
	}
	h.says("end-lease", "--no-leader", "billing").Must(t, 0, `^was  held by node-1, with a lease of 50m0s$`,
		`^now  released in term \d+: the next candidate claims at once$`)
	h.await(waits, leads) // long before 50 minutes are over
	waits.leave()
	h.says("end-lease", "--no-leader", "billing", "--json").Must(t, 0, `"event":"lease-ended",.*"was":"released"}$`)
	h.put("bytes of another program")
	h.says("end-lease", "--no-leader", "billing").Must(t, 1, `^error: .*not an election record`, `^hint: .*tenure reset --force`)
}
