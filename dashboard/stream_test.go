package dashboard

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

func TestServer(t *testing.T) {
	scenes{
		// In HTTP/2 a write deadline also resets a stream that writes nothing.
		"a quiet stream over TLS stays open": func(s *scene) {
			s.show(s.store)
			server := served(s.T, s)
			answer, err := server.Client().Get(server.URL + "/api/stream")
			if err != nil {
				s.Fatal(err)
			}
			defer answer.Body.Close()
			if answer.ProtoMajor != 2 {
				s.Fatalf("it is served by %s", answer.Proto)
			}
			lines := bufio.NewScanner(answer.Body)
			for kept := 0; kept < 5; {
				if !lines.Scan() {
					s.Fatalf("the stream ended after %d comments: %v", kept, lines.Err())
				}
				if strings.HasPrefix(lines.Text(), ": still here") {
					kept++
				}
			}
		},
		// Shutdown waits for streams, so they must end with Run. Afterwards the view is out of
		// date.
		"streams and actions end with Run": func(s *scene) {
			end := s.run(Config{
				Sources: []Source{{Name: "store", Store: s.store, Elections: []string{"billing"}}}, Actions: true,
			})
			server := served(s.T, s)
			server.Client().Timeout = 2 * time.Hour
			answer, err := server.Client().Get(server.URL + "/api/stream")
			if err != nil {
				s.Fatal(err)
			}
			defer answer.Body.Close()
			time.Sleep(time.Minute)
			s.acts(http.StatusConflict, "an action while it runs", "hand-over", map[string]any{"source": "store", "name": "billing", "to": "c"})

			end()
			if _, err := io.ReadAll(answer.Body); err != nil {
				s.Errorf("the stream ended with %v", err)
			}
			within, cancel := context.WithTimeout(s.Context(), time.Hour)
			defer cancel()
			if err := server.Config.Shutdown(within); err != nil {
				s.Errorf("the server: %v", err)
			}
			for _, name := range []string{"hand-over", "reset"} {
				s.acts(http.StatusServiceUnavailable, name+" afterwards", name, map[string]any{"source": "store", "name": "billing", "to": "c"})
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/stream", nil).WithContext(within))
			wantCode(s.T, "a stream afterwards", w.Code, w.Body.String(), http.StatusServiceUnavailable)
		},
	}.play(t)
}
