package clientprops

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"regexp"
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

const (
	trustRemedy   = "export the authorities as PEM, with keytool -exportcert -rfc, and give ssl.truststore.type=PEM"
	decryptRemedy = "make a key that is not encrypted, with openssl pkcs8 -topk8 -nocrypt"
	keyRemedy     = "make PEM of it, with openssl pkcs12 -nodes, and give ssl.keystore.type=PEM"
)

// pemType refuses Java's own kinds of keystores.
func (r *reader) pemType(name, remedy string) bool {
	if kind := r.values[name]; r.has(name) && !strings.EqualFold(kind, "PEM") {
		r.wrong(name, "is not PEM, and nothing else is supported", remedy)
		return false
	}
	return true
}

// authorities returns nil for those of the system.
func (r *reader) authorities() *x509.CertPool {
	const location, text = "ssl.truststore.location", "ssl.truststore.certificates"
	if !r.pemType("ssl.truststore.type", trustRemedy) || !r.has(location) && !r.has(text) {
		return nil
	}
	content, from, ok := r.either(location, text, trustRemedy)
	if !ok {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		r.wrong(from, "has no certificate in PEM", trustRemedy)
	}
	return pool
}

// certificate returns the client's own; ok is false if there is none.
func (r *reader) certificate() (own tls.Certificate, ok bool) {
	const both = "ssl.keystore.location"
	if !r.pemType("ssl.keystore.type", keyRemedy) {
		return own, false
	}
	chain, chainFrom, hasChain := r.either("ssl.certificate.location", "ssl.keystore.certificate.chain", keyRemedy)
	key, keyFrom, hasKey := r.either("ssl.key.location", "ssl.keystore.key", keyRemedy)
	switch {
	case r.has(both) && (hasChain || hasKey):
		r.wrong(both, "is given besides a key or a certificate", "leave out one of them")
		return own, false
	case r.has(both):
		if key, keyFrom, hasKey = r.either(both, "", keyRemedy); !hasKey {
			return own, false
		}
		chain = key
	case !hasChain && !hasKey:
		return own, false
	case !hasKey:
		r.wrong(chainFrom, "is given without a key", "give ssl.keystore.key, or ssl.key.location")
		return own, false
	case !hasChain:
		r.wrong(keyFrom, "is given without a certificate", "give ssl.keystore.certificate.chain, or ssl.certificate.location")
		return own, false
	}
	return r.pair(chain, key, keyFrom)
}

func (r *reader) pair(chain, key []byte, from string) (tls.Certificate, bool) {
	if encrypted(key) {
		r.wrong(from, "is encrypted, which is not supported", decryptRemedy)
		return tls.Certificate{}, false
	}
	own, err := tls.X509KeyPair(chain, key)
	if err != nil { // without the cause, which may quote the unreadable text
		r.wrong(from, "has no key and certificate in PEM that belong together", keyRemedy)
		return tls.Certificate{}, false
	}
	return own, true
}

func encrypted(key []byte) bool {
	for block, rest := pem.Decode(key); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return true
		}
	}
	return false
}

// either returns the content of a file, or else of a property itself; ok is false if there is
// neither, or it cannot be read.
func (r *reader) either(location, text, remedy string) (content []byte, from string, ok bool) {
	switch {
	case r.has(location) && r.has(text):
		r.wrong(location, "is given besides "+r.names[text], "leave out one of them")
	case r.has(location):
		content, err := os.ReadFile(r.values[location])
		switch {
		case err != nil:
			r.wrong(location, "cannot be read: "+err.Error(), "name a file that this process may read")
		case !bytes.Contains(content, []byte("-----BEGIN ")):
			r.wrong(location, "is not PEM, and nothing else is supported", remedy)
		default:
			return content, location, true
		}
	case r.has(text):
		return []byte(unfold(r.values[text])), text, true
	}
	return nil, location, false
}

var begins, ends = regexp.MustCompile(`\s*(-----BEGIN [^-]+-----)\s*`), regexp.MustCompile(`\s*(-----END [^-]+-----)\s*`)

// unfold restores the line ends of PEM, which a file of properties removes.
func unfold(text string) string {
	return ends.ReplaceAllString(begins.ReplaceAllString(text, "\n$1\n"), "\n$1\n")
}
