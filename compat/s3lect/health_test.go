package s3lect_test

import (
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/certificates"
)

// certified returns a certificate for 127.0.0.1, and its authority.
func certified(t *testing.T) (tls.Certificate, []byte) {
	t.Helper()
	ca, cert, key := certificates.New(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	must(t, err)
	pem, err := os.ReadFile(ca)
	must(t, err)
	return pair, pem
}

func TestHealthServerIsChecked(t *testing.T) {
	cert, _ := certified(t)
	a := mustElector(t, options(memory.NewPolled(), "a"))
	for name, cfg := range map[string]s3lect.HealthServerConfig{
		"no address":     {Certificate: cert, Elector: a},
		"no elector":     {Certificate: cert, BindAddress: "127.0.0.1:0"},
		"no certificate": {Elector: a, BindAddress: "127.0.0.1:0"},
	} {
		if h, err := s3lect.NewHealthServer(cfg); err == nil || h != nil {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
	h, err := s3lect.NewHealthServer(s3lect.HealthServerConfig{Certificate: cert, Elector: a, BindAddress: "127.0.0.1:99999"})
	must(t, err)
	if err := h.Start(t.Context()); err == nil {
		t.Error("listens on a port that cannot be")
	}
	if err := h.Stop(t.Context()); err != nil || h.Addr() != nil {
		t.Errorf("not started: %v, %v", h.Addr(), err)
	}
}

// ownElector is a program's own elector. The handler calls only its status.
type ownElector struct {
	s3lect.Elector
	status s3lect.LeadershipStatus
}

func (o ownElector) GetLeadershipStatus() *s3lect.LeadershipStatus { return &o.status }

func TestHandlerAroundAnotherElector(t *testing.T) {
	seen := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	status := s3lect.LeadershipStatus{LeaderID: "a", LeaderAddr: "10.0.0.1:8443", LeaderLastSeen: seen}
	for leads, code := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		status.IsLeader = leads
		w := ask(s3lect.NewLeadershipHandler(ownElector{status: status}, nil), http.MethodGet)
		if w.Code != code || leads && !strings.Contains(w.Body.String(), `"lastUpdated":"2030-01-02T03:04:05Z"`) {
			t.Errorf("leader %v: %d %s", leads, w.Code, w.Body)
		}
	}
}

func TestConfigureOverridesOtherSettings(t *testing.T) {
	opts := options(memory.NewPolled(), "a")
	opts.Configure = func(c *tenure.Config) { c.Lease = time.Millisecond }
	if _, err := s3lect.NewS3Elector(opts); err == nil {
		t.Error("was not asked")
	}
}
