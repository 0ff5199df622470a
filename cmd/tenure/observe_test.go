//go:build integration && unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// tenureSays runs a command within this process. It tries again where the machine is too slow for
// the store to answer.
func tenureSays(t *testing.T, args ...string) (r program.Result) {
	t.Helper()
	for again := true; again; again = strings.Contains(r.Errs, "the store does not answer in time") && wait.Context(t).Err() == nil {
		var out, errs strings.Builder
		code := execute(t.Context(), args, strings.NewReader(""), &out, &errs)
		r = program.Result{Code: code, Out: out.String(), Errs: errs.String()}
	}
	return r
}

// volatile matches the values that differ from run to run.
var volatile = regexp.MustCompile(`("(?:time|renewed|by|lastContact|store)":|"election":"billing","id":)"[^"]*"|("(?:leftMillis|mostMillis|millis)":)[0-9.]+|("term":)[0-9]{10,}|(127\.0\.0\.1:)[0-9]+`)

// golden returns the output with those values replaced.
func golden(r program.Result) string { return volatile.ReplaceAllString(r.Out, `$1$2$3$4~`) }

// home is a store with an election in it.
type home struct {
	*testing.T
	url   string
	store driver.Store
}

func newHome(t *testing.T) *home {
	t.Helper()
	return homeAt(t, "sqlite:"+filepath.Join(t.TempDir(), "elections.db")+"?pristine=true")
}

// homeAt creates the store.
func homeAt(t *testing.T, url string) *home {
	t.Helper()
	s, err := stores.Connect(wait.Context(t), placeAt(t, url), "billing", stores.Options{Create: true}, stores.Patience{Limit: stores.Forever})
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return &home{t, url, s.Driver}
}

func placeAt(t *testing.T, url string) stores.Place {
	t.Helper()
	p, err := stores.Parse("--store", url)
	must.OK(t, err)
	return p
}

// args returns the arguments of a command on the election "billing".
func (h *home) args(command string, more ...string) []string {
	return append([]string{command, "--store", h.url, "--election", "billing", "--connect-timeout", "1h"}, more...)
}

func (h *home) says(command string, more ...string) program.Result {
	h.Helper()
	return tenureSays(h.T, h.args(command, more...)...)
}

// put replaces the value of the key, even while others write it.
func (h *home) put(value string) { h.Helper(); h.putAs("billing", value) }

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

// entry returns the entry in the store.
func (h *home) entry() (e driver.Entry) {
	h.Helper()
	h.insist(func() (err error) {
		e, err = h.store.Read(h.Context(), "billing")
		return err
	})
	return e
}

// insist tries until it succeeds: on a slow machine a store may have an outage.
func (h *home) insist(try func() error) {
	h.Helper()
	wait.Succeeds(h.T, "the store", func(context.Context) error { return try() })
}

// record returns a record of another member, with this time.
func record(leader string, term int, lease time.Duration, updated time.Time, more string) string {
	return fmt.Sprintf(`{"leaderID":%q,"leaderAddr":"10.0.0.1:80","lastUpdated":%q,"term":%d,"leaseMillis":%d,"incarnation":"i","seq":1,"nonce":"%d"%s}`,
		leader, updated.UTC().Format(time.RFC3339Nano), term, lease.Milliseconds(), time.Now().UnixNano(), more)
}

// member is a candidate that runs in this process.
type member struct {
	*tenure.Election
	leave func()
}

// join lets a candidate campaign until the test ends or it leaves.
func (h *home) join(cfg tenure.Config, lead func(ctx context.Context, term *tenure.Term) error) *member {
	h.Helper()
	if cfg.Lease == 0 {
		cfg.Lease = 10 * time.Minute // a slow machine does not lose it
	}
	e, err := tenure.New(h.store, "billing", cfg)
	must.OK(h, err)
	if lead == nil {
		lead = func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil }
	}
	ctx, cancel := context.WithCancel(h.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx, lead)
	}()
	m := &member{e, func() { cancel(); <-done }}
	h.Cleanup(m.leave)
	return m
}

// await waits until a member is in a state, and returns the leader at that time.
func (h *home) await(m *member, is func(tenure.Status) bool) tenure.Leader {
	h.Helper()
	s, err := m.Wait(wait.Context(h.T), is)
	must.OK(h, err)
	return s.Leader
}

// handsOver requests a hand-over until the given member leads. The named successor has a head
// start. On a slow machine the head start may be over before the successor claims, and another
// member leads.
func (h *home) handsOver(to string, more ...string) (r program.Result) {
	h.Helper()
	wait.Succeeds(h.T, "a hand-over to "+to, func(context.Context) error {
		if r = h.says("hand-over", append(more, "--to", to, "--wait", "1h")...); r.Code != 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	return r
}

// watches lets a process watch until it has written a text, and returns all that it has written.
func (h *home) watches(text string, more ...string) program.Result {
	h.Helper()
	w := tenureRuns(h.T, h.args("watch", more...)...).Start()
	w.Says(text)
	w.Signal(syscall.SIGTERM)
	return w.Result()
}

func leads(s tenure.Status) bool { return s.State == tenure.StateLeader }

func follows(id string) func(tenure.Status) bool {
	return func(s tenure.Status) bool { return s.Leader.ID == id }
}

// terms depend on the number of earlier writes.
var terms = regexp.MustCompile(`("term":)\d+`)

func TestStatusShowsTheLeader(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.says("status").Must(t, 3, `^election  billing$`, `^store     sqlite:\S*elections\.db$`, `^leader    nobody$`, `^record    there is none$`)
	m := h.join(tenure.Config{ID: "node-1", Address: "10.0.0.1:8443", Metadata: map[string]string{"zone": "b"}, Priority: -5}, nil)
	h.await(m, leads)
	h.says("status").Must(t, 0, `^leader    node-1 in term \d+$`, `^address   10.0.0.1:8443$`, `^renewed   .* by the leader's clock$`,
		`^lease     10m0s; .* left by that clock; [0-9.m]+s at the most, unless it is renewed$`, `^priority  -5$`, `^metadata  zone=b$`)
	want := `{"time":~,"event":"status","election":"billing","id":~,"term":~,"store":~,"record":"held",` +
		`"leader":"node-1","address":"10.0.0.1:8443","metadata":{"zone":"b"},"leaseMillis":600000,"renewed":~,"leftMillis":~,"mostMillis":~,"confirmed":false,"priority":-5,` +
		`"candidatesUnknown":"over this store, candidates cannot be asked: give the URLs of their processes with --member"}` + "\n"
	if r := h.says("status", "--json"); r.Code != 0 || golden(r) != want {
		t.Errorf("got %d\n%swant\n%s", r.Code, golden(r), want)
	}
	m.leave()
	h.says("status").Must(t, 3, `^record    released by node-1 in term \d+$`)
}

func TestStatusOfEveryKindOfRecord(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	now := time.Now()
	for _, c := range []struct {
		why, value string
		code       int
		text       []string
		json       string
	}{
		{"held", record("node-1", 7, time.Hour, now, ""), 0, []string{`^leader    node-1 in term 7$`}, `"term":7,.*"record":"held","leader":"node-1"`},
		{
			"asked to hand over", record("node-1", 7, time.Hour, now, `,"request":{"term":7,"to":"node-2","by":"ops"}`), 0,
			[]string{`^asked     to hand over to node-2, by ops$`}, `"request":{"to":"node-2","by":~}`,
		},
		{
			"released", record("node-1", 7, 15*time.Second, now, `,"released":true,"successor":"node-2"`), 3,
			[]string{`^record    released by node-1 in term 7$`}, `"term":7,.*"record":"released","leaseMillis":15000,"confirmed":false,"from":"node-1"`,
		},
		{
			"vacant", record("", 7, 15*time.Second, now, ""), 3,
			[]string{`^record    vacant after term 7; candidates wait at least 15s before they claim$`}, `"term":7,.*"record":"vacant","leaseMillis":15000`,
		},
		{
			"somebody else's", "node-1 \x1b[31m", 1,
			[]string{
				`^leader    nobody$`, `^record    foreign$`, `^error: election "billing" in sqlite:\S*elections\.db: key holds bytes that are not an election record: invalid character`,
				`^hint: find out which program wrote them: sqlite3 \S*elections\.db .*WHERE name = 'billing'"; if no program needs them, tenure reset --force`,
			}, `"record":"foreign",.*"problem":"key holds bytes that are not an election record`,
		},
		{
			"malformed", `{"leaderID":"node-1","term":7,"leaseMillis":2000,"incarnation":"i"}`, 1,
			[]string{`^record    malformed$`, `^error: .*key holds a malformed election record`, `^hint: candidates wait until about \d\d:\d\d:\d\d at the latest.*tenure reset --force`},
			`"record":"malformed",.*"problem":"key holds a malformed election record`,
		},
		{"without a lease", record("node-1", 7, 0, now, ""), 1, []string{"leaseMillis is 0, not from 1 to 3600000"}, `"record":"malformed"`},
		{"a negative lease", record("node-1", 7, -time.Second, now, ""), 1, []string{"leaseMillis is -1000, not from 1 to"}, `"record":"malformed"`},
		{"a long lease", record("node-1", 7, 2*time.Hour, now, ""), 1, []string{"leaseMillis is 7200000, not from 1 to"}, `"record":"malformed"`},
		{
			"malformed and released", `{"leaderID":"node-1","term":7,"leaseMillis":2000,"incarnation":"i","released":true}`, 1,
			[]string{`^error: .*key holds a malformed election record`}, `"record":"malformed"`,
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			h := &home{t, h.url, h.store}
			h.put(c.value)
			h.says("status").Must(t, c.code, c.text...)
			r := h.says("status", "--json")
			r.Out = golden(r)
			r.Must(t, c.code, c.json)
			if strings.Contains(r.Out, "\x1b") {
				t.Errorf("not fit for a terminal: %q", r.Out)
			}
		})
	}
}

// status watches a record that, by its leader's clock, was not renewed for long.
func TestStatusOfARecordThatLooksOld(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Hour)
	t.Run("of a leader that died", func(t *testing.T) {
		h := newHome(t)
		h.put(record("node-1", 7, time.Second, long, ""))
		h.says("status").Must(t, 3, `^record    node-1 held it in term 7; its lease of 1s has run out$`)
		h.says("status", "--wait", "0").Must(t, 4, `^leader    node-1 in term 7$`, `^renewed   not confirmed: last written 60 min ago, by its writer's clock$`,
			`^error: .*: node-1 is not confirmed as the leader: no renewal was seen, and .* within the last 1s$`, `^hint: give --wait 1s or more`)
		h.put(record("node-1", 8, time.Hour, time.Now().Add(-3*time.Hour), ""))
		h.says("status", "--wait", "1ms").Must(t, 4, `^node-1 is not confirmed: last written 3 h ago, by its writer's clock; waiting up to 1ms for a renewal$`)
	})
	t.Run("of a clock that is out of its mind", func(t *testing.T) {
		h := newHome(t)
		h.put(record("node-1", 7, time.Second, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), ""))
		h.says("status", "--wait", "0").Must(t, 4, `^renewed   not confirmed: last written on 9999-12-31, by its writer's clock$`)
	})
	t.Run("of one whose clock is wrong", func(t *testing.T) {
		h := newHome(t)
		h.put(record("node-1", 7, time.Minute, long, ""))
		h.whileRenewed(long, func() program.Result { return h.says("status", "--wait", "1h") }).Must(t, 0,
			`^leader    node-1 in term 7$`, `^renewed   just now, 1h0m.* ago by the leader's clock$`, `^lease     1m0s; [0-9.m]+s at the most`)
	})
}

// whileRenewed returns the result of a command, while a leader with a wrong clock renews.
func (h *home) whileRenewed(clock time.Time, command func() program.Result) program.Result {
	h.Helper()
	done := make(chan program.Result)
	go func() { done <- command() }()
	for {
		select {
		case r := <-done:
			return r
		case <-time.After(100 * time.Millisecond):
			h.put(record("node-1", 7, time.Minute, clock, ""))
		}
	}
}

// Commands that only read leave no trace in the store.
func TestObserversWriteNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.put(record("node-1", 7, 2*time.Second, time.Now(), ""))
	before := h.entry().Version
	h.watches("nobody leads").Must(t, 0, "node-1 in term 7 is not confirmed: last written .* ago, by its writer's clock")
	h.says("status").Must(t, 3) // not renewed for a lease
	if after := h.entry().Version; after != before {
		t.Errorf("version %v after %v", after, before)
	}
	h.insist(func() error {
		if _, err := h.store.CompareAndSwap(t.Context(), "billing", driver.Version("999"), []byte("x")); !errors.Is(err, driver.ErrConflict) {
			return fmt.Errorf("versions prove nothing: %w", err)
		}
		return nil
	})
}
