//go:build integration

package natsd

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// occupy holds a port during the test.
func occupy(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ports.Address(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// TestTakenPort: a server that cannot start reports the reason, whichever port is taken.
func TestTakenPort(t *testing.T) {
	taken := occupy(t)
	for name, p := range map[string]place{
		"for clients": {Dir: t.TempDir(), Port: taken},
		"for routes":  {Dir: t.TempDir(), Port: anyPort, Name: "n0", Inner: taken},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{place: p}
			err := s.Start()
			if err == nil {
				s.Kill()
				t.Fatal("it started")
			}
			if !errors.As(err, new(refusal)) {
				t.Errorf("the server does not say why: %v", err)
			}
		})
	}
}

// TestTakenPorts: a cluster tries other ports.
func TestTakenPorts(t *testing.T) {
	taken, asked := occupy(t), 0
	c, err := startCluster(t.TempDir(), true, func(n int) ([]int, error) {
		found, err := ports.Free(n)
		if asked++; asked == 1 && err == nil {
			found[n-1] = taken
		}
		return found, err
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Kill()
	if asked != 2 {
		t.Errorf("it asked for ports %d times", asked)
	}
}
