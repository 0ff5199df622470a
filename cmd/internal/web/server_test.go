//go:build integration

package web_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/internal/test/certificates"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// settings parses flags such as "--pages 0".
func settings(t *testing.T, args ...string) *web.Settings {
	t.Helper()
	return settingsOf(t, &web.Flags{Name: "pages"}, args...)
}

func settingsOf(t *testing.T, w *web.Flags, args ...string) *web.Settings {
	t.Helper()
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	w.Define(f, "pages")
	must.OK(t, f.Parse(args))
	s, err := w.Settings(func(flag string) string { return "--" + flag })
	must.OK(t, err)
	return s
}

// open serves a page until the test ends.
func open(t *testing.T, page http.HandlerFunc, args ...string) *web.Server {
	t.Helper()
	s, err := settings(t, append([]string{"--pages", "0"}, args...)...).Open(page, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

// ask makes one request over its own connection, and returns the status code.
func ask(ctx context.Context, url string, secure *tls.Config, change func(*http.Request)) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	change(request)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func asItIs(*http.Request) {}

func wants(t *testing.T, want int, url, token string, secure *tls.Config) {
	t.Helper()
	code, err := ask(wait.Context(t), url, secure, func(r *http.Request) {
		if token != "" {
			r.Header.Set("Authorization", token)
		}
	})
	if err != nil || code != want {
		t.Errorf("with %q: %d, %v; want %d", token, code, err, want)
	}
}

// wantsAs makes a request whose host name resolves to the server.
func wantsAs(t *testing.T, want int, url, host string) {
	t.Helper()
	if code, err := ask(wait.Context(t), url, nil, func(r *http.Request) { r.Host = host }); err != nil || code != want {
		t.Errorf("%s as %q: %d, %v; want %d", url, host, code, err, want)
	}
}

// A page of another site can let its host name resolve to this machine.
func TestForeignHostNamesAreRefused(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	must.Write(t, token, "s3cret")
	free, guarded := open(t, hello), open(t, hello, "--pages-token-file", token)
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "localhost:80": 200, "127.0.0.1:80": 200, "[::1]:80": 200, "::1": 200, "192.0.2.1": 200,
		"evil.example": 421, "evil.example:80": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:1": 421,
	} {
		wantsAs(t, want, free.URL, host)
		wantsAs(t, http.StatusUnauthorized, guarded.URL, host)
	}
	all := open(t, hello, "--pages", "0.0.0.0:0")
	wantsAs(t, http.StatusOK, strings.Replace(all.URL, "[::]", "127.0.0.1", 1), "billing.example")
	if all.Loopback || !free.Loopback {
		t.Errorf("%s is on loopback: %v; %s: %v", all.URL, all.Loopback, free.URL, free.Loopback)
	}
}

// A server for programs refuses in JSON, with the remedy.
func TestProblems(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	must.Write(t, token, "s3cret")
	for status, more := range map[int][]string{http.StatusUnauthorized: {"--pages-token-file", token}, http.StatusMisdirectedRequest: nil} {
		args := append([]string{"--pages", "0"}, more...)
		s, err := settingsOf(t, &web.Flags{Name: "pages", Problems: true}, args...).Open(http.HandlerFunc(hello), slog.New(slog.DiscardHandler))
		must.OK(t, err)
		t.Cleanup(func() { _ = s.Close() })
		r, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, s.URL, nil)
		must.OK(t, err)
		r.Host = "evil.example"
		answer, err := http.DefaultClient.Do(r)
		must.OK(t, err)
		var p struct {
			Status        int
			Title, Remedy string
		}
		must.OK(t, json.NewDecoder(answer.Body).Decode(&p))
		_ = answer.Body.Close()
		if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" || p.Status != status || p.Title == "" || p.Remedy == "" {
			t.Errorf("%s: %+v, want %d", kind, p, status)
		}
	}
}

func TestDefaultHostIsLoopback(t *testing.T) {
	s := open(t, hello)
	if !strings.HasPrefix(s.URL, "http://127.0.0.1:") {
		t.Errorf("it is at %s", s.URL)
	}
	wants(t, http.StatusOK, s.URL, "", nil)
	_, port, _ := strings.Cut(s.URL, "1:")
	_, err := settings(t, "--pages", port).Open(http.HandlerFunc(hello), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "--pages 127.0.0.1:"+port+": ") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("an address in use: %v", err)
	}
}

func TestToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		must.Write(t, file, token)
	}
	write("s3cret\n")
	var log strings.Builder
	s, err := settings(t, "--pages", "0", "--pages-token-file", file).Open(http.HandlerFunc(hello), slog.New(slog.NewTextHandler(&log, nil)))
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	for token, code := range map[string]int{"Bearer s3cret": 200, "bearer s3cret": 200, "s3cret": 401, "": 401, "Bearer s3cre": 401, "Bearer": 401, "Basic s3cret": 401,
		"Basic " + base64.StdEncoding.EncodeToString([]byte("me:s3cret")): 200, "Basic " + base64.StdEncoding.EncodeToString([]byte("s3cret:me")): 401} {
		wants(t, code, s.URL, token, nil)
	}
	write("renewed")
	wants(t, http.StatusUnauthorized, s.URL, "Bearer s3cret", nil)
	wants(t, http.StatusOK, s.URL, "Bearer renewed", nil)
	for _, damaged := range []string{"", "two words", " \n"} {
		write(damaged)
		wants(t, http.StatusOK, s.URL, "Bearer renewed", nil)
		wants(t, http.StatusUnauthorized, s.URL, "Bearer "+strings.TrimSpace(damaged), nil)
	}
	must.OK(t, s.Close())
	if n := strings.Count(log.String(), "stays in use"); n != 1 {
		t.Errorf("it logs %d times that the token cannot be read:\n%s", n, log.String())
	}
}

func TestTLS(t *testing.T) {
	ca, cert, key := certificates.New(t)
	s := open(t, hello, "--pages-cert", cert, "--pages-key", key)
	trusts := func(ca string) *tls.Config {
		text, err := os.ReadFile(ca)
		must.OK(t, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(text)
		return &tls.Config{RootCAs: roots}
	}
	wants(t, http.StatusOK, s.URL, "", trusts(ca))
	otherCA, otherCert, otherKey := certificates.New(t)
	must.OK(t, errors.Join(os.Rename(otherCert, cert), os.Rename(otherKey, key)))
	wants(t, http.StatusOK, s.URL, "", trusts(otherCA))
	if err := os.WriteFile(cert, nil, 0o600); err != nil { // half-written
		t.Fatal(err)
	}
	wants(t, http.StatusOK, s.URL, "", trusts(otherCA))
	if code, err := ask(wait.Context(t), s.URL, trusts(ca), asItIs); err == nil {
		t.Errorf("the old certificate is still in use: %d", code)
	}
	wants(t, http.StatusBadRequest, strings.Replace(s.URL, "https", "http", 1), "", nil)
}

// Idle clients hold a bounded number of connections, for a bounded time.
func TestThousandIdleClients(t *testing.T) {
	t.Parallel()
	s := open(t, hello)
	address := strings.TrimPrefix(s.URL, "http://")
	for range 1000 {
		c, err := (&net.Dialer{}).DialContext(wait.Context(t), "tcp", address)
		must.OK(t, err)
		defer c.Close()
	}
	wait.Succeeds(t, "another client is served", func(ctx context.Context) error {
		code, err := ask(ctx, s.URL, nil, asItIs)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("it got %d", code)
		}
		return err
	})
}

// An answer that is not read ends, and its memory is freed.
func TestClientsThatReadNothing(t *testing.T) {
	t.Parallel()
	var serving, most atomic.Int64
	s := open(t, func(w http.ResponseWriter, r *http.Request) {
		n := serving.Add(1)
		defer serving.Add(-1)
		most.Store(max(most.Load(), n))
		for r.Context().Err() == nil { // more than any buffer holds
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	const clients = 200
	for range clients {
		c, err := (&net.Dialer{}).DialContext(wait.Context(t), "tcp", strings.TrimPrefix(s.URL, "http://"))
		must.OK(t, err)
		defer c.Close()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "answers are written", func() bool { return most.Load() > 0 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wait.Until(t, "no answer is written any more", func() bool { return serving.Load() == 0 })
	if n := most.Load(); n > 128 {
		t.Errorf("%d clients were served at once", n)
	}
}
