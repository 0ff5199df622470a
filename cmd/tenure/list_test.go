//go:build integration && unix

package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// lists runs list on the store.
func (h *home) lists(more ...string) program.Result {
	h.Helper()
	return tenureSays(h.T, append([]string{"list", "--store", h.url, "--connect-timeout", "1h"}, more...)...)
}

func TestListShowsEachElection(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.lists().Must(t, 0, `^no election in sqlite:\S*elections\.db has a record$`)
	now, long := time.Now(), time.Now().Add(-time.Hour)
	h.putAs("billing", record("node-1", 7, time.Hour, now, ""))
	h.lists().Must(t, 0, `^ELECTION +LEADER +TERM +LEASE +RENEWED +CANDIDATES$`, `^billing +node-1 +7 +1h0m0s +\d.* ago by the leader's clock +not known$`)
	h.putAs("nightly", record("node-2", 8, 15*time.Second, now, `,"released":true`))
	h.putAs("report", record("node-3", 9, time.Second, long, ""))
	h.lists("--wait", "0").Must(t, 3, `^report +node-3 +9 +1s +not confirmed: last written 60 min ago, by its writer's clock `,
		`^nightly +nobody +8 +15s +released by node-2 in term 8 `)
	h.lists("--prefix", "none").Must(t, 0, `^no election in sqlite:\S*elections\.db has a name that begins with "none"$`)
	h.lists("--wait", "0", "--prefix", "report").Must(t, 4, `^report +node-3 `)
	h.lists().Must(t, 3, `^report +nobody +9 +1s +node-3 held it in term 9; its lease of 1s has run out `)
	if r := h.lists("--prefix", "bill"); r.Code != 0 || strings.Contains(r.Out, "nightly") {
		t.Errorf("exit code %d\n%s", r.Code, r.Out)
	}
	h.putAs("nightly/jobs/report", `{"format":"tenure-ticks/1","seq":3}`) // no election
	h.putAs("foreign", "node-1 \x1b[31m")
	r := h.lists("--wait", "0")
	r.Must(t, 1, `^foreign +not known +- +- +foreign `, `^billing +node-1 `, `^error: the leader cannot be determined for 1 of 4 elections: foreign$`, `^hint: tenure status`)
	r = h.lists("--wait", "0", "--json")
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	if len(lines) != 4 || strings.Contains(r.Out, "\x1b") {
		t.Fatalf("%d lines:\n%s", len(lines), r.Out)
	}
	for i, want := range []string{"billing", "foreign", "nightly", "report"} {
		var got struct{ Event, Election, ID, Record string }
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || got.Event != "election" || got.Election != want || got.ID != operator() || got.Record == "" {
			t.Errorf("%v: %s", err, lines[i])
		}
	}
}

// A leader with a wrong clock is confirmed by a renewal.
func TestListConfirmsALeader(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	long := time.Now().Add(-time.Hour)
	h.put(record("node-1", 7, time.Minute, long, ""))
	h.whileRenewed(long, func() program.Result { return h.lists("--wait", "1h") }).Must(t, 0,
		`^billing +node-1 +7 +1m0s +just now, 1h0m.* ago by the leader's clock`)
}

// On a store that cannot ask, the processes are known by their URLs, and by a name for all of them.
func TestCandidatesReportByURL(t *testing.T) {
	t.Parallel()
	h := homeAt(t, "sqlite:"+filepath.Join(t.TempDir(), "elections.db"))
	token := filepath.Join(t.TempDir(), "token")
	must.Write(t, token, "open-sesame")
	w := h.wrap([]string{"--lease", "10s", "--metrics", "0", "--metrics-token-file", token}, "sh", "-c", "exec sleep 1000").Start()
	at := strings.TrimSuffix(w.metricsAt(), "/metrics")
	wait.Until(t, "it reports", func() bool {
		return strings.Contains(h.says("status", "--member", at, "--member-token-file", token, "--wait", "0").Out, "candidate node-1: leader, lease 10s")
	})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(at, "http://"))
	must.OK(t, err)
	found := "dns+http://localhost:" + port
	h.says("status", "--member", found, "--member-token-file", token).Must(t, 0, `^candidate node-1: leader, .*; reported by http://127\.0\.0\.1:`+port+`/member$`)
	h.lists("--member", found, "--member-token-file", token).Must(t, 0, `^billing +node-1 .* 1 reported$`)
	h.lists("--member", found).Must(t, 0, `^billing +node-1 .* none reported$`, `^note: http://127\.0\.0\.1:`+port+`/member: 401 Unauthorized`)
	h.lists().Must(t, 0, `^billing +node-1 .* not known$`, `^note: over this store, candidates cannot be asked: give the URLs of their processes with --member$`)
	h.lists("--member", "node-1").Must(t, 2, `^error: --member "node-1": is not the URL of a member$`)
}

// A name of an election that has no record may be misspelled.
func TestMisspelledElection(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	at := func(command string, more ...string) program.Result {
		return tenureSays(t, append([]string{command, "--store", h.url, "--election", "biling", "--connect-timeout", "1h"}, more...)...)
	}
	if r := at("status"); r.Errs != "" { // the first election may be about to begin
		t.Errorf("without any election: %s", r.Errs)
	}
	for _, name := range []string{"nightly", "a", "b", "billing", "c", "d", "Bilings"} {
		h.putAs(name, record("node-1", 7, time.Hour, time.Now(), ""))
	}
	const some = `^hint: there is no record of election "biling" in sqlite:\S*elections\.db; there are: Bilings, billing, .*, and 2 others: see tenure list$`
	at("status", "--json").Must(t, 3, some)
	at("hand-over").Must(t, 3, some)
	at("reset", "--force").Must(t, 1, some)
	at("watch", "--plain", "--for", "1ms").Must(t, 0, some)
	if r := h.says("status"); strings.Contains(r.Errs, "there is no record") {
		t.Errorf("of an election with a record: %s", r.Errs)
	}
}
