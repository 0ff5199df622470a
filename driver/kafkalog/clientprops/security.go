package clientprops

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
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

const mechanismRemedy = "log in with sasl.mechanism PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512, or with a certificate"

// mechanisms are the supported ones, each with its login module in Java.
var mechanisms = map[string]string{
	"PLAIN":         "PlainLoginModule",
	"SCRAM-SHA-256": "ScramLoginModule",
	"SCRAM-SHA-512": "ScramLoginModule",
}

// protocol reads security.protocol; wrong is true for an unknown value.
func (r *reader) protocol() (overTLS, withSASL, wrong bool) {
	switch strings.ToUpper(r.values["security.protocol"]) {
	case "", "PLAINTEXT":
		return false, false, false
	case "SSL":
		return true, false, false
	case "SASL_PLAINTEXT":
		return false, true, false
	case "SASL_SSL":
		return true, true, false
	}
	return false, false, true
}

// sasl returns an empty mechanism if there is no login.
func (r *reader) sasl() (string, login) {
	_, with, wrong := r.protocol()
	switch {
	case wrong:
		r.wrong("security.protocol", "is unknown", "give PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
		return "", login{}
	case !with:
		r.useless("sasl.", "security.protocol SASL_SSL or SASL_PLAINTEXT")
		return "", login{}
	}
	mechanism := strings.ToUpper(r.values["sasl.mechanism"])
	if _, ok := mechanisms[mechanism]; !ok {
		fault := "is not supported: only PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are"
		if !r.has("sasl.mechanism") {
			fault = "is not given, and GSSAPI, which Kafka would take, is not supported"
		}
		r.wrong("sasl.mechanism", fault, mechanismRemedy)
		return "", login{}
	}
	return mechanism, r.login(mechanism)
}

// useless finds properties that would have no effect, since security.protocol is another.
func (r *reader) useless(prefix, without string) {
	for _, name := range known {
		if strings.HasPrefix(name, prefix) && r.has(name) {
			r.wrong(name, "has no effect without "+without, "give that, or leave this out")
		}
	}
}

// login is the identity that logs in.
type login struct {
	user, password string
	token          bool // a delegation token
}

// login returns the login from one of its two forms.
func (r *reader) login(mechanism string) login {
	names := slices.DeleteFunc([]string{"sasl.username", "sasl.password"}, func(n string) bool { return !r.has(n) })
	if r.has("sasl.jaas.config") {
		for _, n := range names {
			r.wrong(n, "is given besides sasl.jaas.config", "leave out one of them")
		}
		return r.jaas(mechanism)
	}
	l := login{user: r.values["sasl.username"], password: r.values["sasl.password"]}
	switch {
	case len(names) == 0:
		r.problem("sasl.jaas.config", "is not given, so that nobody logs in", jaasRemedy(mechanism))
	case l.user == "":
		r.wrong("sasl.username", "is empty", "give the user's name")
	case l.password == "":
		r.wrong("sasl.password", "is empty", "give the user's password")
	}
	return l
}

// jaasRemedy shows the property as it should be.
func jaasRemedy(mechanism string) string {
	kind := "plain"
	if mechanism != "PLAIN" {
		kind = "scram"
	}
	return `give org.apache.kafka.common.security.` + kind + "." + mechanisms[mechanism] + ` required username="..." password="...";`
}

// jaas returns the login in sasl.jaas.config: one module with its options.
func (r *reader) jaas(mechanism string) login {
	const name = "sasl.jaas.config"
	remedy := jaasRemedy(mechanism)
	e, err := parseJAAS(r.values[name])
	if err != nil {
		r.wrong(name, err.Error(), remedy)
		return login{}
	}
	module := e.module[strings.LastIndex(e.module, ".")+1:]
	if module != mechanisms[mechanism] {
		r.wrong(name, "has another login module than "+mechanism+" needs", remedy)
		return login{}
	}
	l := login{user: e.options["username"], password: e.options["password"], token: e.options["tokenauth"] == "true"}
	delete(e.options, "username")
	delete(e.options, "password")
	if module == "ScramLoginModule" {
		delete(e.options, "tokenauth")
	}
	switch {
	case len(e.options) > 0:
		r.wrong(name, "has options besides username and password", remedy)
	case l.user == "" || l.password == "":
		r.wrong(name, "lacks username or password", remedy)
	}
	return l
}

// entry is one JAAS entry: a module, whether it is required, options.
type entry struct {
	module  string
	options map[string]string
}

var (
	errJAAS  = errors.New("cannot be read")
	errQuote = errors.New("has a quote that does not end")
	errFlag  = errors.New("lacks the word required behind the login module")
	errEnd   = errors.New("does not end in one semicolon")
)

func parseJAAS(text string) (entry, error) {
	words, err := jaasWords(text)
	switch {
	case err != nil:
		return entry{}, err
	case len(words) < 3:
		return entry{}, errJAAS
	case !strings.EqualFold(words[1].text, "required"):
		return entry{}, errFlag
	case words[len(words)-1] != word{text: ";"}:
		return entry{}, errEnd
	}
	e := entry{module: words[0].text, options: map[string]string{}}
	for rest := words[2 : len(words)-1]; len(rest) > 0; rest = rest[3:] {
		if len(rest) < 3 || rest[1] != (word{text: "="}) || rest[2] == (word{text: ";"}) {
			return entry{}, errJAAS
		}
		e.options[rest[0].text] = rest[2].text
	}
	return e, nil
}

// word is one word, or a mark, or the text between quotes.
type word struct {
	text   string
	quoted bool
}

func jaasWords(text string) ([]word, error) {
	var all []word
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var w word
		var err error
		switch text[0] {
		case '"', '\'':
			w, text, err = quotedWord(text)
		case '=', ';':
			w, text = word{text: text[:1]}, text[1:]
		default:
			end := strings.IndexAny(text, " \t\r\n=;\"'")
			if end < 0 {
				end = len(text)
			}
			w, text = word{text: text[:end]}, text[end:]
		}
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// quotedWord returns the text between the first character and the next of its kind. A backslash
// takes the next character as it is.
func quotedWord(text string) (w word, rest string, err error) {
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return word{b.String(), true}, text[i+1:], nil
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return word{}, "", errQuote
}
