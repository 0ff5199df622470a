package dashboard_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/dashboard"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/pipenet"
)

// served serves a handler over TLS and HTTP/2, in virtual time.
func served(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	network := new(pipenet.Network)
	l, err := network.Listen("tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, EnableHTTP2: true, Config: &http.Server{Handler: h, WriteTimeout: 10 * time.Second}}
	s.StartTLS()
	t.Cleanup(s.Close)
	way, ok := s.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatalf("the client has a %T", s.Client().Transport)
	}
	way.DialContext = network.DialContext
	return s
}

// In HTTP/2 a deadline for writing resets a stream that writes nothing, too.
func TestAQuietStreamOverTLSStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := show(t, dashboard.Source{Name: "store", Store: memory.New(), Elections: []string{"billing"}})
		server := served(t, s)
		answer, err := server.Client().Get(server.URL + "/api/stream")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.ProtoMajor != 2 {
			t.Fatalf("it is served by %s", answer.Proto)
		}
		lines := bufio.NewScanner(answer.Body)
		for kept := 0; kept < 5; {
			if !lines.Scan() {
				t.Fatalf("the stream ended after %d comments: %v", kept, lines.Err())
			}
			if strings.HasPrefix(lines.Text(), ": still here") {
				kept++
			}
		}
	})
}
