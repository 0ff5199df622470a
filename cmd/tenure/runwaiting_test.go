//go:build integration && unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
)

// The first election in a bucket waits, and the log has the reason.
func TestRunExplainsAVacancy(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.url = strings.Replace(h.url, "ELECTIONS?pristine=true", "FRESH", 1)
	w := h.wrap([]string{"--create", "--lease", "2s"}, "true").start()
	w.ends(0)
	waits, elected := strings.Index(w.errs.String(), "tenure: waiting"), strings.Index(w.errs.String(), "tenure: elected")
	if waits < 0 || elected < waits || !strings.Contains(w.errs.String(), "until=") || !strings.Contains(w.errs.String(), "?pristine=true") {
		t.Errorf("it says\n%s", &w.errs)
	}
}

func TestRunWarnsOfANamesake(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.await(h.join(tenure.Config{ID: "node-1", Lease: 10 * time.Minute, Tuning: tenure.Tuning{Renew: 200 * time.Millisecond}}, nil), leads)
	h.wrap([]string{"--lease", "2s"}, "true").start().says("the leader has the ID of this candidate")
}

func TestRunWarnsOfUnknownVariables(t *testing.T) {
	t.Parallel()
	w := natsHome(t).wrap([]string{"--json"}, "true")
	w.cmd.Env = append(w.cmd.Env, "TENURE_STOER=nats://h/E")
	w.start().ends(0)
	if got := w.errs.String(); strings.Count(got, "sets no flag") != 1 || !strings.Contains(got, `"variable":"TENURE_STOER"`) {
		t.Errorf("it says\n%s", got)
	}
}

// An unreachable store is logged once, and then with a count at growing intervals.
func TestRunLogsRepeatedTroubleLessOften(t *testing.T) {
	t.Parallel()
	server := servers.NATS(t)
	h := homeAt(t, server.ClientURL()+"/ELECTIONS?pristine=true")
	w := h.wrap([]string{"--lease", "2s"}, "sleep", "100").start()
	w.says("command started")
	server.Shutdown()
	w.says(" times=")
	if n := strings.Count(w.errs.String(), "tenure: trouble"); n > 10 {
		t.Errorf("%d lines:\n%s", n, &w.errs)
	}
	w.signal(syscall.SIGTERM)
	w.ends(0)
}
