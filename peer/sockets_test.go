//go:build integration

package peer

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver/memory"
)

// sockets are those of the loopback.
var sockets = wires{listen: net.Listen, any: "127.0.0.1:0"}

// TestOverSockets repeats over TCP those tests over pipes in which the network itself matters.
func TestOverSockets(t *testing.T) {
	for _, s := range scenarios {
		if s.tcp {
			t.Run(s.name, func(t *testing.T) { s.run(t, sockets) })
		}
	}
	for _, w := range wrongCertificates(t) {
		t.Run("a certificate "+w.name, func(t *testing.T) { w.isReported(t, sockets) })
	}
	for name, run := range map[string]func(*testing.T, wires){
		"renewed certificates": renewedCertificates,
		"a misnamed leader":    misnamedLeaderIsRefused,
		"a hand-over": func(t *testing.T, on wires) {
			handOverIsPushed(t, on, time.Minute, func([]*member) {})
		},
		"a crash": func(t *testing.T, on wires) { crashIsActedOn(t, on) },
		"a reset": answer{"", "reset by peer", nil, reset}.isReported,
	} {
		t.Run(name, func(t *testing.T) { run(t, sockets) })
	}
}

// reset answers with the end of the connection. The report has the port of this end, which differs
// each time.
func reset(w http.ResponseWriter, _ []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}
}

// TestNetworks: only the resolved address counts, so a host name does not help.
func TestNetworks(t *testing.T) {
	narrow := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		t.Run(host, func(t *testing.T) {
			var reached atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
			defer server.Close()
			_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
			cells, said := memory.NewPolled(), make(reports, 100)
			s := open(t, sockets, cells, func(c *Config) { c.Networks, c.OnError = narrow, said.note })
			r := held(newIdentities().issue(forever), 1, 1)
			r.LeaderAddr = host + ":" + port
			write(t, cells, testKey, r)
			listenTo(t, s, testKey)
			_, _ = s.Read(t.Context(), testKey)
			said.until(t, "outside the networks")
			if reached.Load() {
				t.Error("it was dialled")
			}
		})
	}
}
