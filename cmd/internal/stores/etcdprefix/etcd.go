// Package etcdprefix describes stores below a prefix of etcd's keys.
package etcdprefix

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/etcdkv"
)

// Place is a prefix of the keys of a cluster.
type Place struct {
	// Secure: clients talk TLS to the servers.
	Secure bool `json:"secure,omitempty"`
	// Servers are hosts, with or without a port.
	Servers []string `json:"servers"`
	User    string   `json:"user,omitempty"`
	// Password is that of the URL; empty: that of PasswordFile or the environment.
	Password     string `json:"password,omitempty"`
	PasswordFile string `json:"passwordFile,omitempty"`
	// Prefix has no slash at its ends.
	Prefix string `json:"prefix"`
	// CA, Cert and Key name files in PEM; empty: the authorities of the system, no certificate.
	CA   string `json:"ca,omitempty"`
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
}

const (
	plain  = "etcd"
	secure = "etcds"
	// port is the default port of a server.
	port = "2379"
	// passwordVariable is also that of etcdctl.
	passwordVariable = "ETCDCTL_PASSWORD"
	passwordFile     = "password-file"
	// The names of parameters for TLS begin with tlsPrefix.
	tlsPrefix = "tls-"
	tlsCA     = tlsPrefix + "ca"
	tlsCert   = tlsPrefix + "cert"
	tlsKey    = tlsPrefix + "key"
)

// The forms of a URL in hints.
const (
	example       = "etcd://host:2379,host:2379/elections"
	exampleSecure = "etcds://user:password@host/elections?tls-ca=ca.pem"
	likeThis      = "give a URL such as " + example + " or " + exampleSecure
)

var parameters = []kind.Parameter{
	{Name: passwordFile, Value: "FILE", Meaning: "holds the password, and is read again for each login"},
	{Name: tlsCA, Value: "FILE", Meaning: "the authority of the servers' certificates; by default those of the system"},
	{Name: tlsCert, Value: "FILE", Meaning: "a certificate for this client, which is read again when it was replaced"},
	{Name: tlsKey, Value: "FILE", Meaning: "the key of that certificate"},
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:       "etcd",
		Container: "prefix",
		Schemes: []kind.Scheme{
			{Name: plain, Form: "etcd://[USER:PASSWORD@]HOST,.../PREFIX"},
			{Name: secure, Form: "etcds://..."},
		},
		About:      "etcd, --store etcd://[USER[:PASSWORD]@]HOST[:PORT],.../PREFIX or, with TLS, etcds://...[?...], takes these parameters",
		Parameters: parameters,
		Notes: `Give all members of one cluster. The elections are the keys below /PREFIX/. Without a password in
the URL and without password-file, ` + passwordVariable + ` has it.`,
		TokenDigits: len("123456"), // revisions of the cluster
		DemoLease:   2 * time.Second,
		Parse:       func(scheme, raw string) (kind.Place, error) { return parse(scheme, raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// String returns the URL without credentials.
func (e *Place) String() string {
	u := e.scheme() + "://"
	if e.User != "" {
		u += fault.Hidden + "@"
	}
	return kind.With(u+strings.Join(e.Servers, ",")+"/"+e.Prefix, "?",
		[2]string{passwordFile, e.PasswordFile}, [2]string{tlsCA, e.CA}, [2]string{tlsCert, e.Cert}, [2]string{tlsKey, e.Key})
}

func (e *Place) scheme() string {
	if e.Secure {
		return secure
	}
	return plain
}

// GoString is String.
func (e *Place) GoString() string { return e.String() }

// Product returns etcd.
func (e *Place) Product() string { return "etcd" }

// Pushes returns true.
func (e *Place) Pushes() bool { return true }

// Limits returns those of every prefix.
func (e *Place) Limits() (driver.Bounded, error) { return new(etcdkv.Store), nil }

// endpoints returns the URLs of the servers.
func (e *Place) endpoints() (all []string) {
	scheme := "http://"
	if e.Secure {
		scheme = "https://"
	}
	for _, host := range e.Servers {
		if i := strings.LastIndex(host, ":"); i < 0 || strings.HasSuffix(host, "]") {
			host += ":" + port
		}
		all = append(all, scheme+host)
	}
	return all
}

// Commands returns those of etcdctl.
func (e *Place) Commands(key string) kind.Commands {
	at := "etcdctl --endpoints=" + strings.Join(e.endpoints(), ",")
	for _, f := range [][2]string{{"cacert", e.CA}, {"cert", e.Cert}, {"key", e.Key}} {
		if f[1] != "" {
			at += " --" + f[0] + "=" + f[1]
		}
	}
	if e.User != "" {
		at += " --user=" + fault.Hidden
	}
	return kind.Commands{
		Look:   fmt.Sprintf("%s get --print-value-only /%s/%s", at, e.Prefix, key),
		Delete: fmt.Sprintf("%s del /%s/%s", at, e.Prefix, key),
	}
}

// parse reads a URL of the form etcd://[user[:password]@]host[:port][,host[:port]...]/prefix, or
// with etcds:// and the parameters for TLS.
func parse(scheme, raw string) (*Place, error) {
	u, err := url.Parse(raw)
	if err != nil { // left out, since it may quote a part of the password
		return nil, fault.New("write a port as a number, and special characters of a password as %XX; "+likeThis, "is not a valid URL")
	}
	e := &Place{Secure: scheme == secure, User: u.User.Username()}
	e.Password, _ = u.User.Password()
	switch {
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return nil, fault.New("write # of a password as %23; "+likeThis, "has something behind #")
	case u.User != nil && e.User == "":
		return nil, fault.New(likeThis, "has no user before @")
	case u.Host == "":
		return nil, fault.New(likeThis, "names no host")
	case strings.Contains(u.Path, "@"):
		return nil, fault.New(likeThis, "has / before @; write / of a password as %%2F")
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if !kind.ValidHost(host) {
			return nil, fault.New(likeThis, "a host is empty, or a port is not a number from 1 to 65535")
		}
		e.Servers = append(e.Servers, host)
	}
	if e.Prefix = strings.Trim(u.Path, "/"); e.Prefix == "" {
		return nil, fault.New(likeThis, "names no prefix, below which the elections are kept")
	}
	if strings.ContainsFunc(e.Prefix, unicode.IsControl) || len(e.Prefix) > maxPrefix {
		return nil, fault.New(likeThis, "the prefix may have at most %d bytes, and no control characters", maxPrefix)
	}
	return e, e.parameters(u.RawQuery)
}

// maxPrefix is the longest prefix in bytes.
const maxPrefix = 255

// parameters reads those behind the question mark.
func (e *Place) parameters(query string) error {
	q := kind.Query{
		Known: kind.Names(parameters), Hint: likeThis,
		Elsewhere: "give the user and the password before the host, or the password in " + passwordFile + "=FILE or " + passwordVariable,
		IsCredential: func(key string) bool {
			return strings.Contains(key, "user") || strings.Contains(key, "pass") || strings.Contains(key, "token")
		},
	}
	if err := q.Each(query, func(key, value string) error {
		*map[string]*string{passwordFile: &e.PasswordFile, tlsCA: &e.CA, tlsCert: &e.Cert, tlsKey: &e.Key}[key] = value
		return nil
	}); err != nil {
		return err
	}
	switch {
	case !e.Secure && e.CA+e.Cert+e.Key != "":
		return fault.New("give etcds:// instead of etcd://", "has a parameter %s..., and no TLS", tlsPrefix)
	case e.PasswordFile != "" && (e.User == "" || e.Password != ""):
		return fault.New("give the user before the host, and the password in the file alone", "has %s, and no user or a second password", passwordFile)
	case (e.Cert == "") != (e.Key == ""):
		return fault.New("give both", "has only one of %s and %s", tlsCert, tlsKey)
	}
	return nil
}
