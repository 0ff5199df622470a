//go:build integration && unix

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

var servedAt = regexp.MustCompile(`url=(http://\S+/metrics)`)

// metricsAt waits until metrics are served, and returns the URL.
func (w *wrapped) metricsAt() (url string) {
	w.Helper()
	w.Says("metrics are served")
	return servedAt.FindStringSubmatch(w.Errs.String())[1]
}

// shows waits until the metrics have a line.
func (w *wrapped) shows(url, line string) {
	w.Helper()
	program.Answers(w.T, url, http.StatusOK, program.Has(line+"\n"))
}

func TestRunServesMetrics(t *testing.T) {
	t.Parallel()
	w := newHome(t).wrap([]string{"--metrics", "0"}, "sh", "-c", "echo begun >&2; exec sleep 1000").Start()
	url := w.metricsAt()
	w.shows(url, `tenure_leading{election="billing"} 1`)
	w.shows(url, `tenure_lease_seconds{election="billing"} 600`)
	w.Says("begun") // before that, no process would receive the signal
	w.Stops(143)
}

// The metrics have the election before the store answers.
func TestRunServesMetricsWithoutAStore(t *testing.T) {
	t.Parallel()
	w := tenureRuns(t, "run", "--store", "nats://127.0.0.1:1/E", "--election", "billing", "--metrics", "0", "--", "true").Start()
	url := w.metricsAt()
	w.shows(url, `tenure_leading{election="billing"} 0`)
	w.shows(url, `tenure_unhealthy{election="billing"} 1`)
	program.Answers(t, strings.TrimSuffix(url, "metrics")+"healthz", http.StatusServiceUnavailable, program.Has("the store is not reached yet"))
	w.shows(url, `tenure_elections{role="leaderless"} 1`)
	w.Stops(0)
}

func TestRunFailsWhereMetricsCannotBeServed(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(wait.Context(t), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	address := l.Addr().String()
	w := newHome(t).wrap([]string{"--metrics", address}, "true").Start()
	w.Ends(125)
	if got := w.Errs.String(); !strings.Contains(got, "error: --metrics "+address+": ") || !strings.Contains(got, "hint: choose an address") {
		t.Errorf("it says %s", got)
	}
}

// Scrapers that hold connections and read nothing cost no lease.
func TestRunKeepsLeadingDespiteBadScrapers(t *testing.T) {
	t.Parallel()
	w := newHome(t).wrap([]string{"--metrics", "0", "--lease", "8s", "--renew", "500ms"}, "sh", "-c", "exec sleep 1000").Start()
	url := w.metricsAt()
	w.shows(url, `tenure_leading{election="billing"} 1`)
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
	for i := range 1000 {
		c, err := (&net.Dialer{}).DialContext(wait.Context(t), "tcp", address)
		must.OK(t, err)
		defer c.Close()
		if i%2 == 0 {
			if _, err := io.WriteString(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Ten renewals, read while the bad scrapers hold their connections.
	wait.Succeeds(t, "it leads on", func(ctx context.Context) error {
		_, text, err := program.Get(ctx, url)
		if err != nil {
			return err
		}
		renewed := regexp.MustCompile(`tenure_renewals_total\{election="billing",left="half"\} \d\d`)
		if !strings.Contains(text, `reason="expired"} 0`) || !strings.Contains(text, `tenure_leading{election="billing"} 1`) {
			t.Fatalf("it lost the lease:\n%s", text)
		}
		if !renewed.MatchString(text) {
			return fmt.Errorf("not yet renewed ten times:\n%s", text)
		}
		return nil
	})
	w.Stops(143)
}
