package stores

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
)

// shape is how every hint shows what is wanted.
const shape = "give a URL such as nats://host:4222/ELECTIONS, nats://user:password@host/ELECTIONS or tls://host/ELECTIONS"

// schemes are those of the NATS client that a URL can have.
var schemes = []string{"nats", "tls"}

// Parse reads a URL of the form nats://[user:password@]host[:port][,host[:port]...]/BUCKET, or with tls:// to insist on
// an encrypted connection. Its errors name the setting and show no credentials.
func Parse(setting, raw string) (Place, error) {
	if err := checkScheme(raw); err != nil {
		return Place{}, in(setting, raw, err)
	}
	u, err := url.Parse(raw)
	if err != nil { // its text may quote a part of the password
		return Place{}, in(setting, raw, fault.New("write special characters of a password as %XX; "+shape, "is not a valid URL"))
	}
	p := Place{Setting: setting}
	if p.Servers, err = servers(u); err != nil {
		return Place{}, in(setting, raw, err)
	}
	if p.Bucket, err = bucket(u); err != nil {
		return Place{}, in(setting, raw, err)
	}
	p.credentials(u.User)
	return p, nil
}

// in puts the setting and its value in front of an error.
func in(setting, raw string, err error) error {
	var f *fault.Error
	errors.As(err, &f)
	return fault.New(f.Hint, "%s %q: %w", setting, Redact(raw), f.Err)
}

func checkScheme(raw string) error {
	scheme, rest, ok := strings.Cut(raw, ":")
	switch {
	case !ok:
		return fault.New(shape, "is not a URL")
	case scheme == "memory":
		return fault.New("leave out --store to have a server started for the demo, or "+shape,
			"a store in memory is inside one process, and candidates are processes of their own")
	case !slices.Contains(schemes, scheme):
		return fault.New(shape, "unknown scheme; known are nats and tls")
	case !strings.HasPrefix(rest, "//"):
		return fault.New(shape, "is not a URL: // is missing")
	}
	return nil
}

// servers are the hosts as URLs of their own.
func servers(u *url.URL) ([]string, error) {
	if u.Host == "" {
		return nil, fault.New(shape, "names no host")
	}
	var all []string
	for host := range strings.SplitSeq(u.Host, ",") {
		if !validHost(host) {
			return nil, fault.New(shape, "has an empty host or a port that is not from 1 to 65535")
		}
		all = append(all, u.Scheme+"://"+host)
	}
	return all, nil
}

func validHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		u := url.URL{Host: host}
		return u.Hostname() != "" && u.Port() == "" && !strings.HasSuffix(host, ":")
	}
	n, err := strconv.Atoi(port)
	return err == nil && name != "" && 1 <= n && n <= 65535
}

// bucketName is what NATS accepts.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func bucket(u *url.URL) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case u.RawQuery != "" || u.Fragment != "":
		return "", fault.New(shape, "something follows the bucket; write ? and # of a password as %%3F and %%23")
	case name == "":
		return "", fault.New(shape, "names no bucket")
	case strings.Contains(name, "@"):
		return "", fault.New(shape, "has / before @; write / of a password as %%2F")
	case !bucketName.MatchString(name):
		return "", fault.New(shape, "the bucket may have letters, digits, - and _ in its name, and nothing may follow it")
	}
	return name, nil
}

// credentials takes a user with a password, or else a token, as NATS does.
func (p *Place) credentials(u *url.Userinfo) {
	if u == nil {
		return
	}
	if password, ok := u.Password(); ok {
		p.User, p.Password = u.Username(), password
		return
	}
	p.Token = u.Username()
}
