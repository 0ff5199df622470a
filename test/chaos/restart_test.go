package chaos

import (
	"testing"
	"time"
)

// TestServerIsKilled for longer than a lease: nobody leads meanwhile, and afterwards one does, by a higher token.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	f := newField(t, time.Second)
	f.join(3)
	token := f.leader(0).token
	for range 2 {
		f.server.Kill()
		time.Sleep(3 * f.lease / 2) // the outage
		must(t, f.server.Start())
		token = f.leader(token).token
	}
}

// TestServerRestartsWithinTheLease: an outage that a renewal survives costs no leader.
func TestServerRestartsWithinTheLease(t *testing.T) {
	t.Parallel()
	f := newField(t, 6*time.Second)
	f.join(3)
	token := f.leader(0).token
	before := f.record()

	began := time.Now()
	f.server.Kill()
	must(t, f.server.Start())
	if took := time.Since(began); took > f.lease/4 {
		t.Skipf("the server took %v to start, which is too long for this test", took)
	}
	eventually(t, "a renewal is in the store", func() bool { return f.record().Version != before.Version })
	if now := f.latest(); now != token {
		t.Errorf("term %d came after term %d", now, token)
	}
}
