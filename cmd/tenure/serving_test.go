//go:build integration && unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/test/program"
	"github.com/tenure-go/tenure/internal/test/wait"
)

var dashboardAt = regexp.MustCompile(`"url":"(http://[^"]+/)"`)

// startDashboard starts a dashboard and returns its URL.
func startDashboard(t *testing.T, args ...string) (w *wrapped, url string) {
	t.Helper()
	w = tenureRuns(t, append([]string{"dashboard", "--json", "--listen", "0"}, args...)...).Start()
	w.Says(`"serving"`)
	return w, dashboardAt.FindStringSubmatch(w.Out.String())[1]
}

// overviewed has the fields of the overview that a test reads.
type overviewed struct {
	Elections []struct{ Source, Name, Health, Leader string }
	Sources   []struct {
		Name, Problem string
		OK            bool
	}
}

// overview waits until the overview is as wanted, and returns it.
func (w *wrapped) overview(url string, want func(overviewed) bool) (o overviewed) {
	w.Helper()
	program.Answers(w.T, url+"api/overview", http.StatusOK, func(text string) bool {
		o = overviewed{}
		return json.Unmarshal([]byte(text), &o) == nil && want(o)
	})
	return o
}

// knows waits until the page of the election in the only store has a text.
func (w *wrapped) knows(url, what string) {
	w.Helper()
	source := w.overview(url, func(o overviewed) bool { return len(o.Sources) > 0 }).Sources[0].Name
	program.Answers(w.T, url+"api/election?source="+neturl.QueryEscape(source)+"&name=billing", http.StatusOK, program.Has(what))
}

// The dashboard shows several stores: one cannot be reached, and one does not exist.
func TestDashboardShowsALeader(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	w, url := startDashboard(t, "--store", h.url, "--store", "nats://127.0.0.1:1/E", "--store", strings.Replace(h.url, "elections.db", "missing.db", 1),
		"--election", "billing", "--election", "unused")
	h.wrap(nil, "sh", "-c", "exec sleep 1000").Start()
	// billing is led, and unused is not, and one of three stores answers
	w.overview(url, func(o overviewed) bool {
		return len(o.Elections) == 2 && o.Elections[0].Name == "unused" && o.Elections[0].Health == "vacant" &&
			o.Elections[1].Leader == "node-1" && o.Elections[1].Health == "ok" &&
			len(o.Sources) == 3 && o.Sources[0].OK && !o.Sources[1].OK && o.Sources[1].Problem != "" && o.Sources[2].Problem != ""
	})
	w.Stops(0)
}

func TestDashboardWithWrongSettings(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(wait.Context(t), "tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	const at = "dashboard --store nats://127.0.0.1:1/E --election x "
	for args, want := range map[string]string{
		at + "--listen " + l.Addr().String():                   "error: --listen " + l.Addr().String() + ": ",
		at + "--listen x":                                      `error: --listen "x": the port is not a number`,
		at + "--interval 1ms":                                  "error: --interval is 1ms; it must be from 1s to 1h",
		at + "--store zk://x":                                  `error: --store "zk://***": unknown scheme`,
		at + "--store nats://127.0.0.1:1/E":                    "error: --store has nats://127.0.0.1:1/E twice",
		"dashboard":                                            "error: --store is missing",
		at + "--member node-1:9464":                            `error: --member "node-1:9464": is not the URL of a member`,
		at + "--member http://me:s3cret@node-1":                `error: --member "***": is not the URL of a member`,
		at + "--member-token-file /none":                       "error: --member-token-file needs --member",
		at + "--member http://node-1 --store sqlite:/tmp/x.db": "error: --member needs a single --store\nhint: run one dashboard for each store",
		at + "--allow-actions":                                 "error: --allow-actions needs --listen-token-file\nhint: write a secret word into a file",
		at + "--history /none/history":                         "error: --history /none/history: the directory /none does not exist: make it\n",
	} {
		code, said := answers(t, strings.Fields(args)...)
		if code == 0 || !strings.HasPrefix(said, want) {
			t.Errorf("%s: exit code %d, %s", args, code, said)
		}
	}
}

// 200 browsers, each with a stream, leave room for requests.
func TestDashboardServesManyStreams(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, url := startDashboard(t, "--store", h.url, "--election", "billing")
	for range 200 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"api/stream", nil)
		must.OK(t, err)
		response, err := http.DefaultClient.Do(request)
		must.OK(t, err)
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatal(response.Status)
		}
	}
	if _, _, err := program.Get(wait.Context(t), url+"api/overview"); err != nil {
		t.Error(err)
	}
}

// A dashboard that was killed knows the events from before.
func TestDashboardHasAHistory(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	args := []string{"--store", h.url, "--election", "billing", "--history", filepath.Join(t.TempDir(), "history")}
	// A dashboard that starts late sees no term before a renewal.
	h.wrap([]string{"--lease", "5s"}, "sh", "-c", "exec sleep 1000").Start()
	w, url := startDashboard(t, args...)
	w.knows(url, `"leader":"node-1"`)
	saved := args[len(args)-1]
	wait.Until(t, "its term is saved", func() bool {
		text, err := os.ReadFile(saved)
		return err == nil && strings.Contains(string(text), `"seen"`) && strings.Contains(string(text), `"term":{`)
	})
	w.Signal(syscall.SIGKILL)
	w.Ends(-1)
	w, url = startDashboard(t, args...)
	w.knows(url, `"unseen":[{"from":`) // the time without a dashboard
}

// A member whose metrics need a token reports itself.
func TestDashboardShowsMembers(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := filepath.Join(t.TempDir(), "token")
	must.Write(t, token, "open-sesame")
	run := h.wrap([]string{"--metrics", "0", "--metrics-token-file", token, "--priority", "3"}, "sh", "-c", "exec sleep 1000").Start()
	at := strings.TrimSuffix(run.metricsAt(), "/metrics")
	w, url := startDashboard(t, "--store", h.url, "--election", "billing", "--member", at, "--member-token-file", token)
	w.knows(url, `"members":[{"election":"billing","id":"node-1","state":"leader","eligible":true,"priority":3,`)
}

// An operator sees on standard error that a store cannot be reached.
func TestDashboardLogsAStoreThatCannotBeReached(t *testing.T) {
	t.Parallel()
	w, _ := startDashboard(t, "--store", "nats://user:s3cret@127.0.0.1:1/ELECTIONS")
	w.Says(`"msg":"the store cannot be reached","store":"nats://***@127.0.0.1:1/ELECTIONS","cause":`)
	w.Stops(0)
}

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
