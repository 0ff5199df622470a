//go:build unix

package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/peer"
)

// commented runs a candidate "a" on a store, and returns its log after a while.
func commented(t *testing.T, store *memory.Store, after time.Duration) string {
	t.Helper()
	var text strings.Builder
	e, err := tenure.New(store, "e", tenure.Config{ID: "a", Lease: 10 * time.Second, Clock: clock.Standard{}})
	if err != nil {
		t.Fatal(err)
	}
	stop := comment(e, 10*time.Second, slog.New(slog.NewTextHandler(&text, nil)))
	defer plays(t, e)()
	time.Sleep(after)
	stop()
	return text.String()
}

// plays lets a candidate lead whenever it is elected.
func plays(t *testing.T, e *tenure.Election) (leave func()) {
	t.Helper()
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(done)
		_ = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error { <-ctx.Done(); return nil })
	}()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// crashes leaves the record of a crashed leader in the store.
func crashes(t *testing.T, store *memory.Store, e *tenure.Election) {
	t.Helper()
	leave := plays(t, e)
	held, err := store.Read(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	leave()
	store.Put("e", held.Value)
}

const vacancy = "no record shows who led last"

func TestVacancyIsExplainedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		store.Delete("e")
		began := time.Now()
		log := commented(t, store, 30*time.Second)
		if n := strings.Count(log, vacancy); n != 1 {
			t.Errorf("it is explained %d times:\n%s", n, log)
		}
		if until := began.Add(10100 * time.Millisecond).Format("until=2006-01-02T15:04:05.000"); !strings.Contains(log, until) {
			t.Errorf("the log does not say %s:\n%s", until, log)
		}
	})
}

func TestMalformedRecordIsExplainedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		store.Put("e", []byte(`{"leaderID":"b","term":7,"leaseMillis":20000,"incarnation":"i"}`))
		began := time.Now()
		log := commented(t, store, 30*time.Second)
		until := began.Add(20200 * time.Millisecond).Format("until=2006-01-02T15:04:05.000")
		if n := strings.Count(log, "the record is malformed: "); n != 1 || !strings.Contains(log, until) {
			t.Errorf("it is explained %d times, want once with %s:\n%s", n, until, log)
		}
	})
}

func TestImmediateElectionIsNotExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if log := commented(t, memory.New(), 30*time.Second); log != "" {
			t.Errorf("it says\n%s", log)
		}
	})
}

func TestNamesakesAreReported(t *testing.T) {
	for why, c := range map[string]struct {
		id    string
		lives bool
		want  int
	}{
		"another process has this ID":                  {"a", true, 1},
		"another process has another ID":               {"b", true, 0},
		"an earlier run of this candidate has crashed": {"a", false, 0},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New()
				other, err := tenure.New(store, "e", tenure.Config{ID: c.id, Lease: 10 * time.Second, Clock: clock.Standard{}})
				if err != nil {
					t.Fatal(err)
				}
				if c.lives {
					defer plays(t, other)()
				} else {
					crashes(t, store, other)
				}
				log := commented(t, store, time.Minute)
				if n := strings.Count(log, "another process has the same --id"); n != c.want {
					t.Errorf("the log warns %d times, want %d:\n%s", n, c.want, log)
				}
			})
		})
	}
}

func TestPeerTroubleNamesTheFailure(t *testing.T) {
	for _, c := range []struct {
		election string
		err      error
		want     string
	}{
		{"", context.Canceled, "a connection to this process cannot be served"},
		{"", peer.ErrCertificates, "--peer-cert"},
		{"e", context.Canceled, "no reports from the leader over --peer"},
	} {
		var text strings.Builder
		report := peerTrouble(slog.New(slog.NewTextHandler(&text, nil)))
		report(c.election, nil)
		report(c.election, c.err)
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, c.want) {
			t.Errorf("of election %q it says\n%s", c.election, got)
		}
	}
}
