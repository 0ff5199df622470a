// Package pipes serves handlers for HTTP on networks of pipes, for tests in virtual time.
package pipes

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/pipenet"
)

// Serve serves a handler for the length of a test, and returns HOST:PORT. It works in the bubble in
// which the network was made.
func Serve(t testing.TB, n *pipenet.Network, handler http.Handler) (address string) {
	t.Helper()
	l, err := n.Listen("tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return strings.TrimPrefix(server.URL, "http://")
}
