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

// shapeNATS shows the form of a URL of NATS in hints.
const shapeNATS = "nats://host:4222/ELECTIONS, nats://user:password@host/ELECTIONS"

// natsShape is the hint for a URL of NATS.
const natsShape = "give a URL such as " + shapeNATS + " or tls://host/ELECTIONS"

// The parameters of nats:// URLs.
const (
	migrating = "migrating=true"
	pristine  = "pristine=true"
)

// natsParameters are all of them; in a URL they are joined by &.
var natsParameters = []string{migrating, pristine}

// parseNATS reads a URL of the form
// nats://[user:password@]host[:port][,host[:port]...]/BUCKET[?parameter[&parameter]], or with
// tls:// to insist on an encrypted connection.
func parseNATS(raw string) (*NATS, error) {
	u, err := url.Parse(raw)
	if err != nil { // left out, since it may quote a part of the password
		return nil, fault.New("write a port as a number, and special characters of a password as %XX; "+natsShape, "is not a valid URL")
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

// servers returns one URL for each host.
func servers(u *url.URL) ([]string, error) {
	if u.Host == "" {
		return nil, fault.New(natsShape, "names no host")
	}
	var all []string
	for host := range strings.SplitSeq(u.Host, ",") {
		if !validHost(host) {
			return nil, fault.New(natsShape, "a host is empty, or a port is not a number from 1 to 65535")
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
		return "", fault.New(natsShape, "only ?%s and ?%s may follow the bucket; write ? and # of a password as %%3F and %%23",
			migrating, pristine)
	case name == "":
		return "", fault.New(natsShape, "names no bucket")
	case strings.Contains(name, "@"):
		return "", fault.New(natsShape, "has / before @; write / of a password as %%2F")
	case !bucketName.MatchString(name):
		return "", fault.New(natsShape, "the name of a bucket may have only letters, digits, - and _, and no / may follow it")
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

// credentials sets the user and the password; a user without a password is a token, as in NATS.
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
