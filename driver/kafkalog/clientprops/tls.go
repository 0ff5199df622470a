package clientprops

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
)

// tls returns nil if connections are not encrypted.
func (r *reader) tls() *tls.Config {
	over, _, wrong := r.protocol()
	switch {
	case wrong:
		return nil
	case !over:
		r.useless("ssl.", "security.protocol SSL or SASL_SSL")
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.authorities()}
	if own, ok := r.certificate(); ok {
		c.Certificates = []tls.Certificate{own}
	}
	r.versions(c)
	switch strings.ToLower(r.values["ssl.endpoint.identification.algorithm"]) {
	case "https":
	case "none", "":
		if r.has("ssl.endpoint.identification.algorithm") {
			anyHost(c)
		}
	default:
		r.wrong("ssl.endpoint.identification.algorithm", "is unknown", "give https, or nothing for certificates of any host")
	}
	return c
}

// anyHost checks the signer of a certificate, and not its host.
func anyHost(c *tls.Config) {
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, cert := range s.PeerCertificates[1:] {
			between.AddCert(cert)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: c.RootCAs, Intermediates: between})
		return err
	}
}

// tlsVersions has the names of the Java clients.
var tlsVersions = map[string]uint16{"TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13}

// versions sets the range of the allowed versions: all if none is given.
func (r *reader) versions(c *tls.Config) {
	for _, name := range []string{"ssl.protocol", "ssl.enabled.protocols"} {
		if !r.has(name) {
			continue
		}
		var allowed []uint16
		for _, v := range list(r.values[name]) {
			allowed = append(allowed, tlsVersions[v])
		}
		if len(allowed) == 0 || slices.Contains(allowed, 0) {
			r.wrong(name, "has a version that is not supported", "give TLSv1.2, TLSv1.3, or both to ssl.enabled.protocols")
			continue
		}
		c.MinVersion, c.MaxVersion = max(c.MinVersion, slices.Min(allowed)), slices.Max(allowed)
		if name == "ssl.protocol" { // it names the highest
			c.MinVersion = tls.VersionTLS12
		}
	}
}
