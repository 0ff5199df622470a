package s3lect_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver/memory"
)

// certified returns a certificate for 127.0.0.1 that is its own authority.
func certified(t *testing.T) (cert tls.Certificate, ca []byte) {
	t.Helper()
	return certifiedFor(t, net.IPv4(127, 0, 0, 1))
}

func certifiedFor(t *testing.T, ip net.IP) (cert tls.Certificate, ca []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "peers"}, IPAddresses: []net.IP{ip},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
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
	if err != nil {
		t.Fatal(err)
	}
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
