//go:build integration && unix

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

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
