//go:build integration

package recipes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/agent"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// acts notes the backends that acted on requests, and those that acted though another one led by
// the store's record.
type acts struct {
	store *memory.Store

	mu    sync.Mutex
	all   []string
	wrong []string
}

func (a *acts) add(ctx context.Context, name string) {
	e, err := a.store.Read(ctx, "billing")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, name)
	if r := records.Read(e); err == nil && (!r.Held() || r.Leader != name) {
		a.wrong = append(a.wrong, name)
	}
}

// backend is a program on a machine of its own: it acts on requests while it leads, and otherwise
// answers 503. Its agent serves another port.
type backend struct {
	*testing.T
	name, path    string // path: of the campaign
	server, agent *httptest.Server
	elected       chan struct{}

	mu    sync.RWMutex // held for reading while it acts
	asked bool         // to finish
}

func newBackend(t *testing.T, name string, journal *acts) *backend {
	t.Helper()
	all, err := agent.New(journal.store, agent.Config{Election: tenure.Config{Lease: 10 * time.Minute, FinishWithin: 5 * time.Minute}})
	must(t, err)
	b := &backend{T: t, name: name, agent: httptest.NewServer(asksForToken(all.Handler())), elected: make(chan struct{}, 1)}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.RLock()
		defer b.mu.RUnlock()
		if b.asked || !b.mayAct(r.Context()) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		journal.add(r.Context(), name)
		fmt.Fprint(w, name)
	}))
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		b.server.Close()
		b.agent.CloseClientConnections()
		b.agent.Close()
	})
	stream := b.ask(ctx, http.MethodPost, "/v1/elections/billing/campaign", `{"id":"`+name+`","heartbeatMillis":3600000}`) //nolint:bodyclose // follow closes it
	go b.follow(ctx, stream.Body)
	return b
}

// asksForToken answers load balancers only with the token of the recipe.
func asksForToken(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/leader/") && r.Header.Get("Authorization") != "Bearer TOKEN" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (b *backend) ask(ctx context.Context, method, path, body string) *http.Response {
	r, err := http.NewRequestWithContext(ctx, method, b.agent.URL+path, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return &http.Response{Body: http.NoBody}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			b.Error(err)
		}
		return &http.Response{Body: http.NoBody}
	}
	return answer
}

// refuses sends a request past the proxy to a backend that does not lead.
func (b *backend) refuses(ctx context.Context) {
	b.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.server.URL, strings.NewReader("x"))
	must(b.T, err)
	answer, err := http.DefaultClient.Do(r)
	must(b.T, err)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusServiceUnavailable {
		b.Errorf("%s does not lead, and answers %s", b.name, answer.Status)
	}
}

func (b *backend) campaign() string {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.path
}

func (b *backend) mayAct(ctx context.Context) bool {
	answer := b.ask(ctx, http.MethodGet, b.path+"/may-act?needs=1s", "")
	defer func() { _ = answer.Body.Close() }()
	var a struct{ MayAct bool }
	return json.NewDecoder(answer.Body).Decode(&a) == nil && a.MayAct
}

// follow reads the events. The lock makes sure that it acts no more when it reports the end.
func (b *backend) follow(ctx context.Context, stream io.ReadCloser) {
	defer func() { _ = stream.Close() }()
	event := ""
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = text
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Campaign string
			Token    uint64
		}
		_ = json.Unmarshal([]byte(data), &e)
		switch event {
		case "campaign":
			b.mu.Lock()
			b.path = "/v1/elections/billing/campaigns/" + e.Campaign
			b.mu.Unlock()
		case "elected":
			b.elected <- struct{}{}
		case "finish":
			b.mu.Lock()
			b.asked = true
			b.mu.Unlock()
			_ = b.ask(ctx, http.MethodPost, b.campaign()+"/finished", fmt.Sprintf(`{"token":%d}`, e.Token)).Body.Close()
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// proxy runs a real server in front of two backends, and returns its URL.
func proxy(t *testing.T, kind string, a, b *backend) string {
	t.Helper()
	dir, at := t.TempDir(), freeAddress(t)
	addr := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	port := func(s *httptest.Server) string { _, p, _ := net.SplitHostPort(addr(s)); return p }
	var c *exec.Cmd
	file := filepath.Join(dir, "conf")
	switch kind {
	case "haproxy":
		conf := strings.NewReplacer("bind :80", "bind "+at,
			"node-1:8080 port 8421", addr(a.server)+" port "+port(a.agent),
			"node-2:8080 port 8421", addr(b.server)+" port "+port(b.agent)).Replace(text(t, "deploy/haproxy/haproxy.cfg"))
		must(t, os.WriteFile(file, []byte(conf), 0o600))
		c = exec.Command("haproxy", "-db", "-f", file)
	case "nginx":
		conf := strings.NewReplacer("listen 80", "listen "+at, "node-1:8080", addr(a.server), "node-2:8080", addr(b.server)).
			Replace(text(t, "deploy/nginx/billing.conf"))
		for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			conf = of + "_temp_path " + dir + ";\n" + conf
		}
		must(t, os.WriteFile(file, []byte("daemon off; master_process off; pid "+dir+"/pid; error_log stderr;\nevents {}\nhttp { access_log off;\n"+conf+"}\n"), 0o600))
		c = exec.Command("nginx", "-p", dir, "-c", file)
	}
	c.Stderr = t.Output()
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return "http://" + at
}

// TestTrafficFollowsTheLeader: real HAProxy and nginx send requests to the leader, and after a
// hand-over to the next one. No backend acts that does not lead.
func TestTrafficFollowsTheLeader(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"haproxy", "nginx"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			journal := &acts{store: memory.New()}
			a := newBackend(t, "a", journal)
			<-a.elected
			b := newBackend(t, "b", journal)
			url := proxy(t, kind, a, b)
			answers := func(want string) {
				t.Helper()
				wait.Succeeds(t, want+" answers", func(ctx context.Context) error {
					r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("x"))
					must(t, err)
					answer, err := http.DefaultClient.Do(r)
					if err != nil {
						return err
					}
					defer func() { _ = answer.Body.Close() }()
					if got, err := io.ReadAll(answer.Body); err != nil || string(got) != want {
						return fmt.Errorf("%s: %s, %w", answer.Status, got, err)
					}
					return nil
				})
			}
			answers("a")
			b.refuses(t.Context())
			_ = a.ask(t.Context(), http.MethodPost, a.campaign()+"/hand-over", "").Body.Close()
			answers("b")
			a.refuses(t.Context())
			for range 20 {
				answers("b")
			}
			journal.mu.Lock()
			defer journal.mu.Unlock()
			if len(journal.wrong) > 0 {
				t.Errorf("acted without leading: %v of %v", journal.wrong, journal.all)
			}
		})
	}
}
