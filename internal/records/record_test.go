package records_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/test/able"
)

func TestRead(t *testing.T) {
	const common = `"leaderID":"c1","lastUpdated":"2030-01-02T03:04:05Z","term":7,"leaseMillis":15000,"nonce":"n"`
	for _, c := range []struct {
		why, value   string
		held, vacant bool
		asked        string
	}{
		{"held", `{` + common + `}`, true, false, ""},
		{"asked", `{` + common + `,"request":{"term":7,"to":"c2","by":"ops"}}`, true, false, "c2"},
		{"asked in an earlier term", `{` + common + `,"request":{"term":6,"to":"c2"}}`, true, false, ""},
		{"released", `{` + common + `,"released":true,"request":{"term":7,"to":"c2"}}`, false, false, ""},
		{"vacant", `{"leaderID":"","term":7,"leaseMillis":15000,"nonce":"n"}`, false, true, ""},
		{"foreign", `{"x":1}`, false, false, ""},
		{"no JSON", `node-1`, false, false, ""},
		{"of other types", `{"leaderID":1}`, false, false, ""},
	} {
		r := records.Read(driver.Entry{Value: []byte(c.value)})
		if r.Absent || r.Held() != c.held || r.Vacant() != c.vacant {
			t.Errorf("%s: got %+v", c.why, r)
		}
		if q := r.Wish(); (q != nil) != (c.asked != "") || q != nil && q.To != c.asked {
			t.Errorf("%s: asked %+v", c.why, q)
		}
		if c.held && (r.Leader != "c1" || r.Term != 7 || r.Lease != 15*time.Second || r.Nonce != "n") {
			t.Errorf("%s: got %+v", c.why, r)
		}
	}
	if !records.Read(driver.Entry{Version: "3"}).Absent {
		t.Error("a deleted one is there")
	}
}

// The library writes the fields that are read here.
func TestTapShowsTheReadsAndPushesOfAnElection(t *testing.T) {
	for name, store := range map[string]func() driver.Store{
		"pushed": func() driver.Store { return memory.New() }, "polled": func() driver.Store { return memory.NewPolled() },
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { seesRenewals(t, store()) }) })
	}
}

func TestTapKeepsAbilities(t *testing.T) {
	var seen int
	tapped := records.Tap(able.Store{}, func(_ string, _ driver.Entry, pushed bool) { seen++ })
	got, want := able.Answers(t.Context(), tapped), able.Answers(t.Context(), able.Store{})
	want["Bounded"] = strings.Replace(want["Bounded"], "9s", driver.MaxLease.String(), 1)
	if !maps.Equal(got, want) || seen != 1 {
		t.Errorf("%v, want %v; %d pushes seen", got, want, seen)
	}
	if got := able.Answers(t.Context(), records.Tap(struct{ driver.Store }{able.Store{}}, nil)); len(got) > 0 {
		t.Errorf("abilities from nowhere: %v", got)
	}
}

// seesRenewals lets a leader renew in virtual time, and reads its records.
func seesRenewals(t *testing.T, store driver.Store) {
	t.Helper()
	changed := make(chan records.Record, 1000)
	tapped := records.Tap(store, func(_ string, e driver.Entry, _ bool) { changed <- records.Read(e) })
	e, err := tenure.New(store, "billing", tenure.Config{ID: "c1", Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	observer, err := tenure.New(tapped, "billing", tenure.Config{Lease: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range observer.Watch(t.Context()) {
		}
	}()
	nonces := map[string]bool{}
	for len(nonces) < 3 {
		r := <-changed
		nonces[r.Nonce] = true
		if !r.Held() || r.Leader != "c1" || r.Term != term.Token() || r.Lease != time.Second {
			t.Errorf("saw %+v", r)
		}
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
}
