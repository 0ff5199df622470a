//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/peer"
)

func TestHungLogBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe() // without a reader
		defer func() { _ = r.Close() }()
		l := newPatientLog(w)
		for range 2 * logLines {
			if n, err := l.Write([]byte("line\n")); n != 5 || err != nil {
				t.Fatal(n, err)
			}
		}
		begun := time.Now()
		if l.flush(); time.Since(begun) != logFlush {
			t.Errorf("it is waited for %v", time.Since(begun))
		}
		_, _ = l.Write([]byte("late\n"))
	})
}

func TestLogIsPassedOn(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := newPatientLog(&out)
	line := []byte("one\n")
	_, _ = l.Write(line)
	copy(line, "two\n")
	_, _ = l.Write(line)
	l.flush()
	if got := out.String(); got != "one\ntwo\n" || strings.Count(got, "\n") != 2 {
		t.Errorf("%q", got)
	}
}

// distant is a store at the end of a long link.
type distant struct{ *memory.Polled }

func (d distant) Read(ctx context.Context, key string) (driver.Entry, error) {
	select {
	case <-time.After(time.Second):
		return d.Polled.Read(ctx, key)
	case <-ctx.Done():
		return driver.Entry{}, ctx.Err()
	}
}

// The log names the flag with the short lease, and a value that is long enough.
func TestLogNamesATooShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for format, want := range map[string]string{
			"text": `level=WARN msg="tenure: trouble" `,
			"json": `"level":"WARN","msg":"tenure: trouble",`,
		} {
			var out strings.Builder
			r := candidateFlags{format: format, lease: 2 * time.Second, stopWithin: 400 * time.Millisecond, finishWithin: time.Second}
			cfg := r.config()
			cfg.Logger = r.logger(&out)
			e, err := tenure.New(distant{memory.NewPolled()}, "e", cfg)
			must.OK(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_ = e.Run(ctx, func(context.Context, *tenure.Term) error { return nil })
			cancel()
			synctest.Wait()
			if said := out.String(); !strings.Contains(said, want) ||
				!strings.Contains(said, "which is all that --lease 2s leaves; answers took 1s; use at least --lease ") {
				t.Errorf("it says\n%s", said)
			}
		}
	})
}

// TestWarningsNameTheStore: also those with further attributes.
func TestWarningsNameTheStore(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(storeNamer{slog.NewTextHandler(&out, nil), "nats://***@h/E"}).With("a", 1)
	log.Info("fine")
	log.Warn("slow", "b", 2)
	log.WithGroup("g").Error("down", "c", 3)
	for line := range strings.Lines(out.String()) {
		if named := strings.Contains(line, "store=nats://***@h/E"); named == strings.Contains(line, "fine") {
			t.Error(line)
		}
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
