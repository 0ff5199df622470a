//go:build integration

package chaos

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestServerIsKilled: the server is gone for longer than a lease. There is no leader in that time,
// and afterwards there is one with a higher token.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	f := newField(t, time.Second)
	f.join(3)
	last := f.leader(0)
	for range 2 {
		f.server.Kill()
		<-last.term.Context().Done() // and a while longer, in which another might lead
		time.Sleep(f.lease / 2)
		must(t, f.server.Start())
		last = f.leader(last.token)
	}
}

// TestServerRestartsWithinTheLease: an outage that is shorter than the time left for a renewal
// costs no leader.
func TestServerRestartsWithinTheLease(t *testing.T) {
	t.Parallel()
	f := newField(t, time.Minute)
	f.renew, f.vouched = time.Second, true
	f.join(3)
	token := f.leader(0).token
	before := f.record()

	began := time.Now()
	f.server.Kill()
	must(t, f.server.Start())
	wait.Until(t, "the leader writes again", func() bool { return f.record().Version != before.Version })
	took, now := time.Since(began), f.latest()
	switch {
	case now == token:
	case took > f.lease/2: // a stall this long may cost a leader, and only that
		t.Logf("term %d came after term %d: the leader could not write for %v", now, token, took)
	default:
		t.Errorf("term %d came after term %d, though the leader could write again after %v", now, token, took)
	}
}
