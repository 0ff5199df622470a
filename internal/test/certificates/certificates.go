// Package certificates makes certificates for tests.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// New writes an authority and a certificate for 127.0.0.1 into files. Servers and clients can use
// the certificate.
func New(t testing.TB) (ca, cert, key string) {
	t.Helper()
	ca, renew := Renewed(t)
	cert, key = renew("", time.Hour)
	return ca, cert, key
}

// Renewed writes an authority. The function renew writes a certificate of it, which ends after a
// time, into the files of a member. Changes are made to it before it is signed.
func Renewed(t testing.TB) (
	ca string, renew func(member string, lifetime time.Duration, changes ...func(*x509.Certificate)) (cert, key string),
) {
	t.Helper()
	dir := t.TempDir()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	rootKey := newKey(t)
	ca = write(t, dir, "ca.pem", "CERTIFICATE", sign(t, root, root, rootKey, rootKey))
	return ca, func(member string, lifetime time.Duration, changes ...func(*x509.Certificate)) (cert, key string) {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "member"},
			NotBefore: root.NotBefore, NotAfter: time.Now().Add(lifetime), KeyUsage: x509.KeyUsageDigitalSignature,
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		for _, change := range changes {
			change(leaf)
		}
		leafKey := newKey(t)
		private, err := x509.MarshalPKCS8PrivateKey(leafKey)
		if err != nil {
			t.Fatal(err)
		}
		cert = write(t, dir, member+"cert.pem", "CERTIFICATE", sign(t, leaf, root, leafKey, rootKey))
		key = write(t, dir, member+"key.pem", "PRIVATE KEY", private)
		return cert, key
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t testing.TB, c, by *x509.Certificate, key, byKey *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func write(t testing.TB, dir, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
