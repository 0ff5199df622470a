//go:build integration

package ports

import (
	"net"
	"testing"
)

// A port stays kept while no server listens, and a server can listen on it all the same.
func TestPortIsKeptWithoutAServer(t *testing.T) {
	all, err := Free(3)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range all {
		if keep(port) {
			t.Errorf("port %d is given twice", port)
		}
		l, err := net.Listen("tcp", Address(port))
		if err != nil {
			t.Errorf("no server can listen: %v", err)
			continue
		}
		_ = l.Close()
	}
}
