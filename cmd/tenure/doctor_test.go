//go:build integration && unix

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/doctor"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/driver/race"
)

// examines runs doctor on the store.
func (h *home) examines(more ...string) program.Result {
	h.Helper()
	return tenureSays(h.T, append([]string{"doctor", "--store", h.url, "--connect-timeout", "1h"}, more...)...)
}

// The cell of the probe is no election for other commands.
func TestDoctorExaminesAStore(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put(record("node-1", 7, time.Hour, time.Now(), ""))
	before := h.entry()
	r := h.examines("--lease", "1h", "--election", "billing")
	for _, want := range []string{
		`^sqlite:\S*elections\.db\S*, on 20`, `^  right to read       ok: "billing" can be read$`, `^  settings            ok: `,
		`^  conditional writes  ok: 9 of 9 races of 16 had one winner`, `^  pushes `, `with 1h0m0s up to 1h0m0s$`, `^  cost                ok: \$0`,
		`^left in the store: tenure-doctor\.\w+; to remove it: sqlite3 .*tenure-doctor\.`,
	} {
		r.Must(t, r.Code, want)
	}
	if r.Code != 0 && r.Code != 4 { // a busy machine may be too slow for a call
		t.Errorf("exit code %d\n%s%s", r.Code, r.Out, r.Errs)
	}
	if e := h.entry(); e.Version != before.Version {
		t.Error("doctor wrote to an election")
	}
	if r := h.lists("--wait", "0"); strings.Contains(r.Out, race.Prefix) {
		t.Errorf("list shows the probe:\n%s", r.Out)
	}
	misspelled := tenureSays(t, "status", "--store", h.url, "--election", "biling", "--connect-timeout", "1h")
	misspelled.Must(t, 3, `^hint: there is no record of election "biling" in \S*; there are: billing$`)
}

func TestDoctorWritesJSON(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	r := h.examines("--json")
	var got struct {
		Event, Store, Verdict, Left string
		LeaseMillis                 int64
		Checks                      []doctor.Row
		ReadsMillis, WritesMillis   *doctor.Latency
		DollarsPerMonth             *float64
	}
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil || strings.Count(r.Out, "\n") != 1 {
		t.Fatalf("%v: %s%s", err, r.Out, r.Errs)
	}
	if got.Event != "doctor" || got.Store == "" || got.LeaseMillis != 15000 || len(got.Checks) < 12 || got.ReadsMillis == nil || got.WritesMillis == nil ||
		got.DollarsPerMonth == nil || !strings.HasPrefix(got.Left, race.Prefix) || (got.Verdict == "ok") != (r.Code == 0) {
		t.Errorf("exit code %d: %s", r.Code, r.Out)
	}
}

func TestDoctorWithAWrongSetting(t *testing.T) {
	t.Parallel()
	file := "sqlite:" + filepath.Join(t.TempDir(), "elections.db")
	for _, c := range []struct {
		why  string
		args []string
		code int
		want string
	}{
		{"no store", nil, 2, "^error: --store is missing$"},
		{"no URL", []string{"--store", "elections"}, 2, `^error: --store: is not a URL: no scheme is in front; known are `},
		{"no such scheme", []string{"--store", "ftp://host"}, 2, "^error: --store .*unknown scheme"},
		{"no server", []string{"--store", "nats://127.0.0.1:1/E", "--connect-timeout", "0"}, 1, "^error: --store .*no server answers"},
		{"no table", []string{"--store", file}, 1, "^error: --store "},
		{"a lease that the store does not take", []string{"--store", file, "--lease", "1ms"}, 2, "^error: --lease is 1ms; it must be from 1s to 1h0m0s$"},
		{"no time between examinations", []string{"--store", file, "--watch", "0"}, 2, "^error: --watch is 0; it must be more than 0$"},
		{"no name of an election", []string{"--store", "nats://host/E", "--election", "a b"}, 2, "^error: --election cannot be a key of the store"},
	} {
		t.Run(c.why, func(t *testing.T) {
			tenureSays(t, append([]string{"doctor"}, c.args...)...).Must(t, c.code, c.want)
		})
	}
}
