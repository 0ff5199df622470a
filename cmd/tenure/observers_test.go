//go:build integration && unix

package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// result is the outcome of a command line.
type result struct {
	code      int
	out, errs string
}

// tenureSays runs a command within this process.
func tenureSays(t *testing.T, args ...string) result {
	t.Helper()
	return tenureUntil(t, t.Context(), args...)
}

// tenureUntil tries again where the machine is too slow for the store to answer.
func tenureUntil(t *testing.T, ctx context.Context, args ...string) (r result) {
	t.Helper()
	for again := true; again; again = strings.Contains(r.errs, "the store does not answer in time") && wait.Context(t).Err() == nil {
		var out, errs strings.Builder
		code := execute(ctx, args, strings.NewReader(""), &out, &errs)
		r = result{code, out.String(), errs.String()}
	}
	if all := r.out + r.errs; strings.Contains(all, "s3cret") {
		t.Errorf("tenure %s shows the password:\n%s", strings.Join(args, " "), all)
	}
	return r
}

// must checks the exit code, and that the output contains these texts.
func (r result) must(t *testing.T, code int, wants ...string) {
	t.Helper()
	all := r.out + "\n---\n" + r.errs
	if r.code != code {
		t.Errorf("exit code %d, want %d:\n%s", r.code, code, all)
	}
	for _, want := range wants {
		if !regexp.MustCompile("(?m)" + want).MatchString(all) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
}

// volatile matches the values that differ from run to run.
var volatile = regexp.MustCompile(`("(?:time|renewed|by|lastContact)":|"election":"billing","id":)"[^"]*"|("(?:leftMillis|mostMillis|millis)":)[0-9.]+|("term":)[0-9]{10,}|(127\.0\.0\.1:)[0-9]+`)

// golden returns the output with those values replaced.
func (r result) golden() string { return volatile.ReplaceAllString(r.out, `$1$2$3$4~`) }

// home is a store that needs a password, with an election in it.
type home struct {
	*testing.T
	url   string
	store driver.Store
}

func natsHome(t *testing.T) *home {
	t.Helper()
	url := servers.NATS(t, &server.User{Username: "user", Password: "s3cret"}).ClientURL()
	return homeAt(t, strings.Replace(url, "nats://", "nats://user:s3cret@", 1)+"/ELECTIONS?pristine=true")
}

// homeAt creates the bucket or topic.
func homeAt(t *testing.T, url string) *home {
	t.Helper()
	s, err := stores.Connect(wait.Context(t), placeAt(t, url), "billing", stores.Options{Create: true}, stores.Patience{Limit: stores.Forever})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &home{t, url, s.Driver}
}

func placeAt(t *testing.T, url string) stores.Place {
	t.Helper()
	p, err := stores.Parse("--store", url)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// args returns the arguments of a command on the election "billing".
func (h *home) args(command string, more ...string) []string {
	return append([]string{command, "--store", h.url, "--election", "billing", "--connect-timeout", "1h"}, more...)
}

func (h *home) says(command string, more ...string) result {
	h.Helper()
	return tenureSays(h.T, h.args(command, more...)...)
}

// put replaces the value of the key, even while others write it.
func (h *home) put(value string) {
	h.Helper()
	h.insist(func() error {
		e, err := h.store.Read(h.Context(), "billing")
		if err == nil {
			_, err = h.store.CompareAndSwap(h.Context(), "billing", e.Version, []byte(value))
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
	if err != nil {
		h.Fatal(err)
	}
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
	if err != nil {
		h.Fatal(err)
	}
	return s.Leader
}

// handsOver requests a hand-over until the given member leads. The named successor has a head
// start. On a slow machine the head start may be over before the successor claims, and another
// member leads.
func (h *home) handsOver(to string, more ...string) (r result) {
	h.Helper()
	wait.Succeeds(h.T, "a hand-over to "+to, func(context.Context) error {
		if r = h.says("hand-over", append(more, "--to", to, "--wait", "1h")...); r.code != 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	return r
}

// watches runs a watch until it has printed a text, and returns its output.
func (h *home) watches(text string, more ...string) result {
	h.Helper()
	ctx, cancel := context.WithCancel(wait.Context(h.T))
	defer cancel()
	var errs strings.Builder
	out := &seeker{text: text, found: cancel}
	code := execute(ctx, h.args("watch", more...), strings.NewReader(""), out, &errs)
	return result{code, out.all.String(), errs.String()}
}

// seeker is a writer that calls found once the text was written.
type seeker struct {
	text  string
	found func()
	all   strings.Builder
}

func (s *seeker) Write(p []byte) (int, error) {
	s.all.Write(p)
	if strings.Contains(s.all.String(), s.text) {
		s.found()
	}
	return len(p), nil
}

func leads(s tenure.Status) bool { return s.State == tenure.StateLeader }

func follows(id string) func(tenure.Status) bool {
	return func(s tenure.Status) bool { return s.Leader.ID == id }
}

// terms depend on the number of earlier writes.
var terms = regexp.MustCompile(`("term":)\d+`)
