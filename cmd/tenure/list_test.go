//go:build integration && unix

package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// lists runs list on the store.
func (h *home) lists(more ...string) result {
	h.Helper()
	return tenureSays(h.T, append([]string{"list", "--store", h.url, "--connect-timeout", "1h"}, more...)...)
}

// putAs replaces the value of another key.
func (h *home) putAs(key, value string) {
	h.Helper()
	h.insist(func() error {
		e, err := h.store.Read(h.Context(), key)
		if err == nil {
			_, err = h.store.CompareAndSwap(h.Context(), key, e.Version, []byte(value))
		}
		return err
	})
}

func TestListShowsEachElection(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.lists().must(t, 0, `^no election in nats://\*\*\*@.*/ELECTIONS has a record$`)
	now, long := time.Now(), time.Now().Add(-time.Hour)
	h.putAs("billing", record("node-1", 7, time.Hour, now, ""))
	h.lists().must(t, 0, `^ELECTION +LEADER +TERM +LEASE +RENEWED +CANDIDATES$`, `^billing +node-1 +7 +1h0m0s +\d.* ago by the leader's clock +none answered$`)
	h.putAs("nightly", record("node-2", 8, 15*time.Second, now, `,"released":true`))
	h.putAs("report", record("node-3", 9, time.Second, long, ""))
	h.lists("--wait", "0").must(t, 3, `^report +node-3 +9 +1s +not confirmed: last written 60 min ago, by its writer's clock `,
		`^nightly +nobody +8 +15s +released by node-2 in term 8 `)
	h.lists("--prefix", "none").must(t, 0, `^no election in nats://.* has a name that begins with "none"$`)
	h.lists("--wait", "0", "--prefix", "report").must(t, 4, `^report +node-3 `)
	h.lists().must(t, 3, `^report +nobody +9 +1s +node-3 held it in term 9; its lease of 1s has run out `)
	if r := h.lists("--prefix", "bill"); r.code != 0 || strings.Contains(r.out, "nightly") {
		t.Errorf("exit code %d\n%s", r.code, r.out)
	}
	h.putAs("foreign", "node-1 \x1b[31m")
	r := h.lists("--wait", "0")
	r.must(t, 1, `^foreign +not known +- +- +foreign `, `^billing +node-1 `, `^error: the leader cannot be determined for 1 of 4 elections: foreign$`, `^hint: tenure status`)
	r = h.lists("--wait", "0", "--json")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) != 4 || strings.Contains(r.out, "\x1b") {
		t.Fatalf("%d lines:\n%s", len(lines), r.out)
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
	h := natsHome(t)
	long := time.Now().Add(-time.Hour)
	h.put(record("node-1", 7, time.Minute, long, ""))
	done := make(chan result)
	go func() { done <- h.lists("--wait", "1h") }()
	for {
		select {
		case r := <-done:
			r.must(t, 0, `^billing +node-1 +7 +1m0s +just now, 1h0m.* ago by the leader's clock`)
			return
		case <-time.After(100 * time.Millisecond):
			h.put(record("node-1", 7, time.Minute, long, ""))
		}
	}
}

// Two processes take part in an election on NATS. Both answer, until one is killed.
func TestCandidatesAnswerOverNATS(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	first := h.wrap([]string{"--lease", "3s"}, "sh", "-c", "exec sleep 1000").start()
	second := tenureRuns(t, append(h.args("run", "--id", "node-2", "--lease", "3s", "--priority", "-7"), "--", "sh", "-c", "exec sleep 1000")...).start()
	wait.Until(t, "both answer", func() bool {
		r := h.says("status")
		return strings.Contains(r.out, "candidate node-1: ") && strings.Contains(r.out, "candidate node-2: candidate, priority -7, lease 3s, last contact with the store ")
	})
	h.lists().must(t, 0, `^billing +node-1 .* 2 answered$`)
	_ = first.cmd.Process.Kill()
	wait.Until(t, "one is left", func() bool {
		r := h.says("status", "--json")
		return strings.Contains(r.out, `"leader":"node-2"`) && strings.Contains(r.out, `"id":"node-2","known":"answered","state":"leader"`) && !strings.Contains(r.out, `"id":"node-1"`)
	})
	_ = second.cmd.Process.Kill()
	wait.Until(t, "its lease runs out", func() bool { return h.says("status").code == 3 })
	h.says("status").must(t, 3, `^record    node-2 held it`, `^candidate node-2: has led before$`)
}

// Where the right is missing, the candidate takes part all the same, and all sides say so.
func TestCandidatesWithoutTheRight(t *testing.T) {
	t.Parallel()
	rights := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"$JS.API.>", "$KV.ELECTIONS.>", "$JS.FC.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
	}
	url := servers.NATS(t, &server.User{Username: "user", Password: "s3cret", Permissions: rights}).ClientURL()
	h := homeAt(t, strings.Replace(url, "nats://", "nats://user:s3cret@", 1)+"/ELECTIONS?pristine=true")
	w := h.wrap(nil, "sh", "-c", "echo begun >&2; exec sleep 1000").start()
	w.says("begun")
	w.says("observers cannot see this candidate")
	var r result
	wait.Until(t, "the refusal comes while status waits for answers", func() bool {
		r = h.says("status")
		return strings.Contains(r.out, "permission denied")
	})
	r.must(t, 0, `^leader    node-1 in term`, `^candidate none answered: .*permission denied: the user may not publish to tenure\.candidates\.ELECTIONS`)
}

// On a store that cannot ask, the processes are known by their URLs, and by a name for all of them.
func TestCandidatesReportByURL(t *testing.T) {
	t.Parallel()
	h := homeAt(t, "sqlite:"+filepath.Join(t.TempDir(), "elections.db"))
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("open-sesame"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := h.wrap([]string{"--lease", "10s", "--metrics", "0", "--metrics-token-file", token}, "sh", "-c", "exec sleep 1000").start()
	at := strings.TrimSuffix(w.metricsAt(), "/metrics")
	wait.Until(t, "it reports", func() bool {
		return strings.Contains(h.says("status", "--member", at, "--member-token-file", token, "--wait", "0").out, "candidate node-1: leader, lease 10s")
	})
	_, port, err := net.SplitHostPort(strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	found := "dns+http://localhost:" + port
	h.says("status", "--member", found, "--member-token-file", token).must(t, 0, `^candidate node-1: leader, .*; reported by http://127\.0\.0\.1:`+port+`/member$`)
	h.lists("--member", found, "--member-token-file", token).must(t, 0, `^billing +node-1 .* 1 reported$`)
	h.lists("--member", found).must(t, 0, `^billing +node-1 .* none reported$`, `^note: http://127\.0\.0\.1:`+port+`/member: 401 Unauthorized`)
	h.lists().must(t, 0, `^billing +node-1 .* not known$`, `^note: over this store, candidates cannot be asked: give the URLs of their processes with --member$`)
	h.lists("--member", "node-1").must(t, 2, `^error: --member "node-1": is not the URL of a member$`)
}

// A name of an election that has no record may be misspelled.
func TestMisspelledElection(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	at := func(command string, more ...string) result {
		return tenureSays(t, append([]string{command, "--store", h.url, "--election", "biling", "--connect-timeout", "1h"}, more...)...)
	}
	if r := at("status"); r.errs != "" { // the first election may be about to begin
		t.Errorf("without any election: %s", r.errs)
	}
	for _, name := range []string{"nightly", "a", "b", "billing", "c", "d", "Bilings"} {
		h.putAs(name, record("node-1", 7, time.Hour, time.Now(), ""))
	}
	const some = `^hint: there is no record of election "biling" in nats://\*\*\*@.*/ELECTIONS; there are: Bilings, billing, .*, and 2 others: see tenure list$`
	at("status", "--json").must(t, 3, some)
	at("hand-over").must(t, 3, some)
	at("reset", "--force").must(t, 1, some)
	at("watch", "--plain", "--for", "1ms").must(t, 0, some)
	if r := h.says("status"); strings.Contains(r.errs, "there is no record") {
		t.Errorf("of an election with a record: %s", r.errs)
	}
}
