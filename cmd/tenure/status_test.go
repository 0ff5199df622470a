//go:build integration && unix

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/driver"
)

func TestStatusShowsTheLeader(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.says("status").must(t, 3, `^election  billing$`, `^store     nats://\*\*\*@127.0.0.1:\d+/ELECTIONS$`, `^leader    nobody$`, `^record    there is none$`)
	m := h.join(tenure.Config{ID: "node-1", Address: "10.0.0.1:8443", Metadata: map[string]string{"zone": "b"}, Priority: -5}, nil)
	h.await(m, leads)
	h.says("status").must(t, 0, `^leader    node-1 in term \d+$`, `^address   10.0.0.1:8443$`, `^renewed   .* by the leader's clock$`,
		`^lease     10m0s; .* left by that clock; [0-9.m]+s at the most, unless it is renewed$`, `^priority  -5$`, `^metadata  zone=b$`)
	want := `{"time":~,"event":"status","election":"billing","id":~,"term":~,"store":"nats://***@127.0.0.1:~/ELECTIONS","record":"held",` +
		`"leader":"node-1","address":"10.0.0.1:8443","metadata":{"zone":"b"},"leaseMillis":600000,"renewed":~,"leftMillis":~,"mostMillis":~,"confirmed":false,"priority":-5,"candidates":[` +
		`{"id":"node-1","known":"answered","state":"leader","eligible":true,"priority":-5,"leaseMillis":600000,"address":"10.0.0.1:8443","lastContact":~}]}` + "\n"
	if r := h.says("status", "--json"); r.code != 0 || r.golden() != want {
		t.Errorf("got %d\n%swant\n%s", r.code, r.golden(), want)
	}
	m.leave()
	h.says("status").must(t, 3, `^record    released by node-1 in term \d+$`)
}

func TestStatusOfEveryKindOfRecord(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
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
			[]string{`^record    vacant after term 7; candidates wait 15s before they claim$`}, `"term":7,.*"record":"vacant","leaseMillis":15000`,
		},
		{
			"somebody else's", "node-1 \x1b[31m", 1,
			[]string{
				`^leader    nobody$`, `^record    foreign$`, `^error: election "billing" in nats://\*\*\*@.*: key holds bytes that are not an election record: invalid character`,
				`^hint: find out which program wrote them: nats --server nats://\*\*\*@.* kv get ELECTIONS billing; if no program needs them, tenure reset --force`,
			}, `"record":"foreign",.*"problem":"key holds bytes that are not an election record`,
		},
		{
			"malformed", `{"leaderID":"node-1","term":7,"leaseMillis":2000,"incarnation":"i"}`, 1,
			[]string{`^record    malformed$`, `^error: .*key holds a malformed election record`, `^hint: candidates wait until about \d\d:\d\d:\d\d at the latest.*tenure reset --force`},
			`"record":"malformed",.*"problem":"key holds a malformed election record`,
		},
		{
			"malformed and released", `{"leaderID":"node-1","term":7,"leaseMillis":2000,"incarnation":"i","released":true}`, 1,
			[]string{`^error: .*key holds a malformed election record`}, `"record":"malformed"`,
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			h := &home{t, h.url, h.store}
			h.put(c.value)
			h.says("status").must(t, c.code, c.text...)
			r := h.says("status", "--json")
			r.out = r.golden()
			r.must(t, c.code, c.json)
			if strings.Contains(r.out, "\x1b") {
				t.Errorf("not fit for a terminal: %q", r.out)
			}
		})
	}
}

// status watches a record that, by its leader's clock, was not renewed for long.
func TestStatusOfARecordThatLooksOld(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Hour)
	t.Run("of a leader that died", func(t *testing.T) {
		h := natsHome(t)
		h.put(record("node-1", 7, time.Second, long, ""))
		h.says("status").must(t, 3, `^record    node-1 held it in term 7; its lease of 1s has run out$`)
		h.says("status", "--wait", "0").must(t, 4, `^leader    node-1 in term 7$`, `^renewed   not confirmed: last written 60 min ago, by its writer's clock$`,
			`^error: .*: node-1 is not confirmed as the leader: no renewal was seen, and .* within the last 1s$`, `^hint: give --wait 1s or more`)
		h.put(record("node-1", 8, time.Hour, time.Now().Add(-3*time.Hour), ""))
		h.says("status", "--wait", "1ms").must(t, 4, `^node-1 is not confirmed: last written 3 h ago, by its writer's clock; waiting up to 1ms for a renewal$`)
	})
	t.Run("of a clock that is out of its mind", func(t *testing.T) {
		h := natsHome(t)
		h.put(record("node-1", 7, time.Second, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), ""))
		h.says("status", "--wait", "0").must(t, 4, `^renewed   not confirmed: last written on 9999-12-31, by its writer's clock$`)
	})
	t.Run("of one whose clock is wrong", func(t *testing.T) {
		h := natsHome(t)
		h.put(record("node-1", 7, time.Minute, long, ""))
		done := make(chan result)
		go func() { done <- h.says("status", "--wait", "1h") }()
		for {
			select {
			case r := <-done:
				r.must(t, 0, `^leader    node-1 in term 7$`, `^renewed   just now, 1h0m.* ago by the leader's clock$`, `^lease     1m0s; [0-9.m]+s at the most`)
				return
			case <-time.After(100 * time.Millisecond):
				h.put(record("node-1", 7, time.Minute, long, ""))
			}
		}
	})
}

// Commands that only read leave no trace in the store.
func TestObserversWriteNothing(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	h.put(record("node-1", 7, 2*time.Second, time.Now(), ""))
	before := h.entry().Version
	h.watches("nobody leads").must(t, 0, "node-1 in term 7 is not confirmed: last written .* ago, by its writer's clock")
	h.says("status").must(t, 3) // not renewed for a lease
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

// A user with the right to read can observe. An error names the missing right for anything else.
func TestObserversNeedNoRightToWrite(t *testing.T) {
	t.Parallel()
	publish := []string{"$JS.API.STREAM.MSG.GET.KV_ELECTIONS", "$JS.API.STREAM.INFO.KV_ELECTIONS", "$JS.API.CONSUMER.CREATE.KV_ELECTIONS.*.$KV.ELECTIONS.>", "$JS.FC.KV_ELECTIONS.>"}
	url := servers.NATS(t, &server.User{Username: "all", Password: "x"}, &server.User{
		Username: "looker", Password: "s3cret", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		},
	}).ClientURL()
	at := func(user string) string { return strings.Replace(url, "nats://", "nats://"+user+"@", 1) + "/ELECTIONS" }
	h := homeAt(t, at("all:x"))
	h.put(record("node-1", 7, time.Minute, time.Now(), ""))
	h.url = at("looker:s3cret")
	h.says("status").must(t, 0, `^leader    node-1 in term 7$`)
	h.watches("node-1 in term 7 is not confirmed").must(t, 0)
	h.says("hand-over").must(t, 1, `^error: --store nats://\*\*\*@.*/ELECTIONS: .*permission denied.*\$KV\.ELECTIONS\.billing`, `^hint: grant it`)
	h.put("node-1")
	h.says("reset", "--force").must(t, 1, `^error: --store nats://\*\*\*@.*/ELECTIONS: .*permission denied.*\$KV\.ELECTIONS\.billing`, `^hint: grant it`)
}
