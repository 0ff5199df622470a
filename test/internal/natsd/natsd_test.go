//go:build integration

package natsd

import (
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

// TestTakenPorts: if one of its ports is taken, a cluster tries other ports.
func TestTakenPorts(t *testing.T) {
	taken := occupy(t)
	for name, which := range map[string]int{"for clients": 0, "for routes": 2*Members - 1} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			c, err := startCluster(t.TempDir(), true, func(n int) ([]int, error) {
				found, err := ports.Free(n)
				if asked++; asked == 1 && err == nil {
					found[which] = taken
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
		})
	}
}
