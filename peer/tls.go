package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// LoadTLS makes both ends of TLS from PEM files, for Config.ServerTLS and Config.ClientTLS. Each
// end accepts only certificates of the authorities in caFile, and shows the one in certFile with
// the key in keyFile. The server refuses clients without a certificate. Both ends use the same
// certificate, so it must be valid for a server and a client, and name the host in the leader's
// address. If certFile and keyFile are empty, server is nil, and client follows leaders that ask
// for no certificate. The version is TLS 1.3, or 1.2 with peers that do not support 1.3. LoadTLS
// reads the files once; call it in Config.TLS to read them for each connection.
//
// It returns an error that names the file if one cannot be read, if the key does not fit the
// certificate, and if the other members could not accept the certificate: it is of another
// authority, expired or not yet valid, or not for both ends.
func LoadTLS(caFile, certFile, keyFile string) (server, client *tls.Config, err error) {
	roots, err := loadRoots(caFile)
	if err != nil {
		return nil, nil, err
	}
	client = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if certFile == "" && keyFile == "" {
		return nil, client, nil
	}
	pair, err := loadPair(roots, certFile, keyFile)
	if err != nil {
		return nil, nil, err
	}
	client.Certificates = []tls.Certificate{pair}
	server = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    roots,
	}
	return server, client, nil
}

func loadRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("peer: authorities: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("peer: authorities: %s holds no certificate in PEM", file)
	}
	return roots, nil
}

func loadPair(roots *x509.CertPool, certFile, keyFile string) (tls.Certificate, error) {
	if certFile == "" || keyFile == "" {
		return tls.Certificate{}, errors.New("peer: a certificate and its key go together; one is missing")
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return pair, fmt.Errorf("peer: certificate %s with key %s: %w", certFile, keyFile, err)
	}
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(c)
		}
	}
	for _, end := range []struct {
		name  string
		usage x509.ExtKeyUsage
	}{{"server", x509.ExtKeyUsageServerAuth}, {"client", x509.ExtKeyUsageClientAuth}} {
		_, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{end.usage},
		})
		if err != nil {
			return pair, fmt.Errorf("peer: certificate %s is not good for a %s: %w", certFile, end.name, err)
		}
	}
	return pair, nil
}
