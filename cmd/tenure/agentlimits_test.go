//go:build integration && linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// unixClient returns a client of the agent at a socket, with connections of its own.
func unixClient(t *testing.T, socket string) *http.Client {
	t.Helper()
	to := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(to.CloseIdleConnections)
	return &http.Client{Transport: to}
}

// asks makes a request and returns the answer; the caller closes its body.
func asks(t *testing.T, c *http.Client, method, path, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(wait.Context(t), method, "http://localhost"+path, strings.NewReader(body))
	must.OK(t, err)
	answer, err := c.Do(request)
	must.OK(t, err)
	return answer
}

// TestAgentWithTenThousandConnections: a campaign goes on beside 10,000 clients that connect and
// send nothing. When they are gone, so are their files, and the store has opened a few at most.
func TestAgentWithTenThousandConnections(t *testing.T) {
	h := newHome(t)
	w, socket := h.agent("one")
	files := func() int {
		all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.Cmd.Process.Pid))
		must.OK(t, err)
		return len(all)
	}
	stream := asks(t, unixClient(t, socket), http.MethodPost, "/v1/elections/billing/campaign", `{"heartbeatMillis":3600000}`)
	defer stream.Body.Close()
	first := make([]byte, 1024)
	n, err := stream.Body.Read(first)
	must.OK(t, err)
	_, name, _ := strings.Cut(string(first[:n]), `"campaign":"`)
	name, _, _ = strings.Cut(name, `"`)
	client, number := unixClient(t, socket), 0
	beat := func() {
		t.Helper()
		number++
		answer := asks(t, client, http.MethodPost, "/v1/elections/billing/campaigns/"+name+"/heartbeat", fmt.Sprintf(`{"number":%d}`, number))
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("heartbeat %d: %d %s, %v", number, answer.StatusCode, text, err)
		}
	}
	beat()
	before := files()
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()
	for i := range 10_000 {
		wait.Succeeds(t, "it connects", func(ctx context.Context) error {
			c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			if err == nil {
				idle = append(idle, c)
			}
			return err // the queue of the socket may be full
		})
		if i%100 == 0 {
			beat()
		}
	}
	for _, c := range idle {
		_ = c.Close()
	}
	wait.Succeeds(t, "the files are closed", func(context.Context) error {
		if now := files(); now > before+50 {
			return fmt.Errorf("%d are open, %d were", now, before)
		}
		return nil
	})
	beat()
	answer := asks(t, unixClient(t, socket), http.MethodGet, "/healthz", "")
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %d", answer.StatusCode)
	}
}

// TestAgentAnswersALongPoll: a wait that is longer than a request may take gets its answer.
func TestAgentAnswersALongPoll(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	_, socket := h.agent("one")
	const path = "/v1/elections/billing?wait=3s&since="
	c := unixClient(t, socket)
	var last string
	for range 2 { // the second one waits longer than a request may take
		answer := asks(t, c, http.MethodGet, path+last, "")
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		must.OK(t, err)
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(text), `"vacant"`) {
			t.Fatalf("%d: %s", answer.StatusCode, text)
		}
		_, last, _ = strings.Cut(string(text), `"version":"`)
		last, _, _ = strings.Cut(last, `"`)
	}
}

// TestAgentKilledLeavesItsSocket: the next agent takes the place of a socket that is not served.
func TestAgentKilledLeavesItsSocket(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	killed, socket := h.agent("one")
	killed.Signal(syscall.SIGKILL)
	_ = killed.Result()
	if _, err := os.Lstat(socket); err != nil {
		t.Fatalf("the socket of the killed agent: %v", err)
	}
	if _, err := new(net.Dialer).DialContext(wait.Context(t), "unix", socket); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("it is served: %v", err)
	}
	next := tenureRuns(t, "agent", "--store", h.url, "--json", "--listen", "unix:"+socket).Start()
	next.Says(`"serving"`)
	answer := asks(t, unixClient(t, socket), http.MethodGet, "/healthz", "")
	answer.Body.Close()
}

// TestAgentRefusesInJSON: a refusal in front of the interface is a problem, too.
func TestAgentRefusesInJSON(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	token := filepath.Join(t.TempDir(), "token")
	must.Write(t, token, "s3cret")
	_, guarded := h.agent("guarded", "--listen-token-file", token)
	_, open := h.agent("open")
	for path, want := range map[string]struct {
		socket string
		status int
	}{
		"/healthz":               {guarded, http.StatusUnauthorized},
		"/leader/a%2F..%2Fb":     {open, http.StatusNotFound},
		"/v1/elections/a/../b/c": {open, http.StatusNotFound},
	} {
		answer := asks(t, unixClient(t, want.socket), http.MethodGet, path, "")
		var p struct{ Title, Remedy string }
		err := json.NewDecoder(answer.Body).Decode(&p)
		answer.Body.Close()
		if kind := answer.Header.Get("Content-Type"); answer.StatusCode != want.status || kind != "application/problem+json" || err != nil || p.Title == "" || p.Remedy == "" {
			t.Errorf("%s: %d, %s, %+v, %v", path, answer.StatusCode, kind, p, err)
		}
	}
}

// TestAgentRefusesFlags: the error names the flag.
func TestAgentRefusesFlags(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for flags, want := range map[string]string{
		"--sidecar a/../b":           `^error: --sidecar is "a/../b"; it must have no empty part, `,
		"--lease 2h":                 `^error: --lease is 2h0m0s; it must be from `,
		"--check true --check-floor": `^error: --check-floor is for tenure run: `,
	} {
		tenureSays(t, append([]string{"agent", "--store", h.url, "--listen", "0"}, strings.Fields(flags)...)...).Must(t, 2, want)
	}
}

// aToken matches the third field of a line of the state file.
var aToken = regexp.MustCompile(`\t\d+\t`)

// TestAgentStateFile: the file has a line for each campaign, and none when the agent begins and
// ends. GET / names the leader, and the metrics count.
func TestAgentStateFile(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "state"), filepath.Join(t.TempDir(), "socket")
	must.Write(t, file, "billing\tleading\t1\tan agent that was killed\n")
	w := tenureRuns(t, "agent", "--store", h.url, "--json", "--listen", "unix:"+socket, "--state-file", file, "--sidecar", "billing",
		"--metrics", "0", "--finish-within", "1ms").Start()
	w.Says(`"serving"`)
	holds := func(want string) {
		t.Helper()
		wait.Succeeds(t, "the state file is up to date", func(context.Context) error {
			text, err := os.ReadFile(file)
			if text := aToken.ReplaceAllString(string(text), "\tTOKEN\t"); err == nil && text != want {
				err = fmt.Errorf("it holds %q, not %q", text, want)
			}
			return err
		})
	}
	holds("")
	stream := asks(t, unixClient(t, socket), http.MethodPost, "/v1/elections/billing/campaign", `{"id":"a","heartbeatMillis":3600000}`)
	defer stream.Body.Close()
	holds("billing\tleading\tTOKEN\ta\n")
	wait.Succeeds(t, "the sidecar names the leader", func(context.Context) error {
		answer := asks(t, unixClient(t, socket), http.MethodGet, "/", "")
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err == nil && string(text) != `{"name":"a"}`+"\n" {
			err = fmt.Errorf("it says %q", text)
		}
		return err
	})
	w.Stops(0)
	holds("")
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("it leaves %v, %v", all, err)
	}
}
