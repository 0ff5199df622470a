package stores

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// The parameters of nats:// URLs.
const (
	migrating = "migrating=true"
	pristine  = "pristine=true"
)

// natsParameters are to be joined by &.
var natsParameters = []string{migrating, pristine}

// parseNATS reads a URL of the form
// nats://[user:password@]host[:port][,host[:port]...]/BUCKET[?parameter[&parameter]], or with
// tls:// to insist on an encrypted connection.
func parseNATS(raw string) (*NATS, error) {
	u, err := url.Parse(raw)
	if err != nil { // its text may quote a part of the password
		return nil, fault.New("write special characters of a password as %XX; "+shape, "is not a valid URL")
	}
	given := strings.Split(u.RawQuery, "&")
	n := &NATS{Migrating: slices.Contains(given, migrating), Pristine: slices.Contains(given, pristine)}
	if n.Servers, err = servers(u); err != nil {
		return nil, err
	}
	if n.Bucket, err = bucket(u); err != nil {
		return nil, err
	}
	n.credentials(u.User)
	return n, nil
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

// bucketName matches names that NATS accepts.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func bucket(u *url.URL) (string, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/")
	switch {
	case !known(u.RawQuery), u.Fragment != "":
		return "", fault.New(shape, "something follows the bucket that is neither ?%s nor ?%s; write ? and # of a password as %%3F and %%23",
			migrating, pristine)
	case name == "":
		return "", fault.New(shape, "names no bucket")
	case strings.Contains(name, "@"):
		return "", fault.New(shape, "has / before @; write / of a password as %%2F")
	case !bucketName.MatchString(name):
		return "", fault.New(shape, "the bucket may have letters, digits, - and _ in its name, and nothing may follow it")
	}
	return name, nil
}

func known(query string) bool {
	for p := range strings.SplitSeq(query, "&") {
		if p != "" && !slices.Contains(natsParameters, p) {
			return false
		}
	}
	return true
}

// credentials takes a user with a password, or else a token, as NATS does.
func (n *NATS) credentials(u *url.Userinfo) {
	if u == nil {
		return
	}
	if password, ok := u.Password(); ok {
		n.User, n.Password = u.Username(), password
		return
	}
	n.Token = u.Username()
}
