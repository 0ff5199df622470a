package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
)

// waits runs a candidate "a" on a store for a minute, and returns the lines in its log about waits.
func waits(t *testing.T, store driver.Store, change func(*tenure.Config)) []string {
	t.Helper()
	var log logBuffer
	start(t, mustNew(t, store, "a", func(c *tenure.Config) {
		c.Logger = log.logger()
		if change != nil {
			change(c)
		}
	}), holdOn)
	time.Sleep(time.Minute)
	return log.lines("tenure: waiting")
}

// mustBeOne checks that there is one line, with all of these texts.
func mustBeOne(t *testing.T, lines []string, texts ...string) {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1:\n%s", len(lines), strings.Join(lines, ""))
	}
	for _, text := range texts {
		if !strings.Contains(lines[0], text) {
			t.Errorf("the line does not have %q:\n%s", text, lines[0])
		}
	}
}

// until is the end of a wait that begins now, in a log. Clocks may differ by 1 %.
func until(lease time.Duration) string {
	return time.Now().Add(lease + lease/100).Format("until=2006-01-02T15:04:05.000")
}

func TestWaitsAreExplained(t *testing.T) {
	const released = `{"leaderID":"b","incarnation":"i","nonce":"n","term":3,"seq":4,"leaseMillis":20000,"released":true}`
	for _, c := range []struct {
		what   string
		value  string
		change func(*tenure.Config)
		lease  time.Duration // of a wait that ends; 0: it does not end
		texts  []string
	}{
		{"a vacant record may hide a leader", `{"term":3,"seq":1,"leaseMillis":20000,"nonce":"n"}`, nil,
			20 * time.Second, []string{"level=INFO", "reason=vacant", "no record shows which candidate led last"}},
		{"so may a malformed one", `{"leaderID":"b","term":7,"leaseMillis":20000,"incarnation":"i"}`, nil,
			20 * time.Second, []string{"level=INFO", "reason=malformed", "the record is malformed"}},
		{"an earlier run may have this ID", `{"leaderID":"a","incarnation":"i","nonce":"n","term":3,"seq":4,"leaseMillis":20000}`, nil,
			20 * time.Second, []string{"level=INFO", "reason=same-id", "an earlier run of it"}},
		{"foreign bytes are not overwritten", "hello", nil,
			0, []string{"level=WARN", "reason=foreign", "until an operator removes them"}},
		{"no nominee is there", released, func(c *tenure.Config) { c.Nominator, c.NomineeOnly = &manualNominator{}, true },
			0, []string{"level=WARN", "reason=not-nominee", "not the nominee"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				store.Put(key, []byte(c.value))
				if c.lease > 0 {
					c.texts = append(c.texts, until(c.lease))
				}
				lines := waits(t, store, c.change)
				mustBeOne(t, lines, c.texts...)
				if c.lease == 0 && strings.Contains(lines[0], "until=") {
					t.Errorf("this wait has no end:\n%s", lines[0])
				}
			})
		})
	}
}

// An empty store gets a vacant record at once, and then the reason is logged.
func TestWaitInAnEmptyStoreIsExplainedAtOnce(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		store.Delete(key)
		var log logBuffer
		var events diary
		end := until(lease)
		flaky := &away{Store: store}
		start(t, mustNew(t, hinting{flaky, "be pristine"}, "a", func(c *tenure.Config) {
			c.Logger, c.OnEvent = log.logger(), events.note
		}), holdOn)
		synctest.Wait()
		mustBeOne(t, log.lines("tenure: waiting"), end, "candidates wait one lease", "; be pristine\"")
		time.Sleep(lease / 2)
		flaky.be(errors.New("i/o timeout"))
		time.Sleep(lease / 2)
		flaky.be(nil)
		time.Sleep(time.Minute)
		if n := events.count(tenure.EventWaiting); n != 1 {
			t.Errorf("%d events, want 1", n)
		}
	})
}

func TestElectionWithoutAWaitExplainsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		if lines := waits(t, store, nil); len(lines) > 0 {
			t.Errorf("it leads at once and says\n%s", lines)
		}
		if lines := waits(t, store, func(c *tenure.Config) { c.ID = "b" }); len(lines) > 0 {
			t.Errorf("another one leads and it says\n%s", lines)
		}
	})
}

// While nobody leads for a short time, as in a hand-over, it does not matter who is eligible.
func TestIneligibleCandidateExplainsALongVacancy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var log logBuffer
		e := mustNew(t, store, "a", func(c *tenure.Config) { c.Logger = log.logger() })
		e.SetEligible(false)
		start(t, e, holdOn)
		time.Sleep(lease - time.Second)
		if lines := log.lines("tenure: waiting"); len(lines) > 0 {
			t.Errorf("it says at once\n%s", lines)
		}
		time.Sleep(2 * lease)
		mustBeOne(t, log.lines("tenure: waiting"), "level=WARN", "reason=ineligible")
	})
}

// A release that may not be the last record gives no right to claim.
func TestUnprovenReleaseIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := unproven{memory.New()}
		store.Put(key, []byte(`{"leaderID":"b","incarnation":"i","nonce":"n","term":3,"seq":4,"leaseMillis":20000,"released":true}`))
		end := until(20 * time.Second)
		mustBeOne(t, waits(t, store, nil), "level=INFO", "reason=unproven", end)
	})
}

func TestNamesakesAreReported(t *testing.T) {
	bubbles(t, func(t *testing.T, store operated) {
		start(t, mustNew(t, store, "a", nil), holdOn)
		synctest.Wait()
		lines := waits(t, store, nil)
		if len(lines) != 2 {
			t.Fatalf("%d lines, want 2:\n%s", len(lines), strings.Join(lines, ""))
		}
		mustBeOne(t, lines[:1], "level=INFO", "reason=same-id", "until=")
		mustBeOne(t, lines[1:], "level=WARN", "reason=same-id", "give each its own")
	})
}

// It is logged once for a leader, and again for the next one, whose first record is no renewal.
func TestLeadersWithAnotherLeaseAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		go func() {
			for seq, leader := range []string{"b", "b", "b", "c", "c", "c"} {
				term := 3 + strings.Index("bc", leader)
				store.Put(key, fmt.Appendf(nil, `{"leaderID":%q,"incarnation":%[1]q,"nonce":"%d","term":%d,"seq":%[2]d,"leaseMillis":3000}`, leader, seq+1, term))
				time.Sleep(time.Second)
			}
		}()
		lines := waits(t, store, func(c *tenure.Config) { c.Lease = 30 * time.Second })
		if len(lines) != 2 {
			t.Fatalf("%d lines, want 2:\n%s", len(lines), strings.Join(lines, ""))
		}
		const text = " has a lease of 3s, and this candidate one of 30s"
		mustBeOne(t, lines[:1], "level=WARN", "reason=other-lease", "the leader b"+text)
		mustBeOne(t, lines[1:], "level=WARN", "reason=other-lease", "the leader c"+text)
	})
}

// The elections of a group share the lines.
func TestWaitsOfAGroupAreOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var log logBuffer
		g := mustNewGroup(t, store, "a", func(c *tenure.Config) { c.Logger = log.logger() })
		all := g.elections(20)
		for _, e := range all {
			store.Delete(e.Name())
		}
		ctx, stop := context.WithCancel(t.Context())
		ends := g.joinAll(ctx, all, &termCounter{})
		time.Sleep(lease / 2)
		mustBeOne(t, log.lines("tenure: waiting"), "reason=vacant")
		stop()
		for _, ended := range ends {
			<-ended
		}
	})
}

// hinting is a store with a hint.
type hinting struct {
	driver.Store
	hint string
}

func (h hinting) PristineHint() string { return h.hint }

// unproven is a store that marks the states that an operator put there.
type unproven struct{ *memory.Store }

func (u unproven) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := u.Store.Read(ctx, key)
	e.Unproven = strings.Contains(string(e.Value), `"leaderID":"b"`)
	return e, err
}
