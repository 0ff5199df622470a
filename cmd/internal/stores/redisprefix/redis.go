// Package redisprefix describes stores in Redis or Valkey, under a prefix of keys.
package redisprefix

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/redisstore"
)

// Place is a prefix of keys on a server, on the primary behind Sentinels, or in a Cluster.
type Place struct {
	// TLS is set for rediss://.
	TLS      bool     `json:"tls,omitempty"`
	Hosts    []string `json:"hosts"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	Database int      `json:"database,omitempty"`
	// Prefix is the beginning of all keys; nil: the default.
	Prefix  *string `json:"prefix,omitempty"`
	Cluster bool    `json:"cluster,omitempty"`
	Wait    int     `json:"wait,omitempty"`
	// Sentinel is the name of the primary; the hosts are Sentinels.
	Sentinel             string `json:"sentinel,omitempty"`
	SentinelUser         string `json:"sentinelUser,omitempty"`
	SentinelPasswordFile string `json:"sentinelPasswordFile,omitempty"`
	PasswordFile         string `json:"passwordFile,omitempty"`
	CA                   string `json:"ca,omitempty"`
	Cert                 string `json:"cert,omitempty"`
	Key                  string `json:"key,omitempty"`
}

// The forms of URLs in hints.
const (
	example  = "redis://user@host:6379/0?prefix=tenure:"
	likeThis = "give a URL such as " + example
)

var parameters = []kind.Parameter{
	{Name: "prefix", Value: "TEXT", Meaning: "the beginning of all keys; by default tenure:"},
	{Name: "wait", Value: "N", Meaning: "count a write or a read only if N replicas have it; give the number of all replicas"},
	{Name: "sentinel", Value: "NAME", Meaning: "the hosts are Sentinels, which know the primary by this name"},
	{Name: "cluster", Value: "true", Meaning: "the hosts are servers of a Cluster"},
	{Name: "password-file", Value: "FILE", Meaning: "holds the password, and is read again for each connection"},
	{Name: "sentinel-user", Value: "NAME", Meaning: "the user for the Sentinels, if they want one"},
	{Name: "sentinel-password-file", Value: "FILE", Meaning: "holds the password for the Sentinels"},
	{Name: "tls-ca", Value: "FILE", Meaning: "for rediss: CA of the server's certificate, in PEM; default: those of the system"},
	{Name: "tls-cert", Value: "FILE", Meaning: "for rediss: the client's own certificate, with tls-key=FILE"},
	{Name: "tls-key", Value: "FILE", Meaning: "for rediss: the key of the certificate"},
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:       "redis",
		Container: "prefix",
		Schemes: []kind.Scheme{
			{Name: "redis", Aliases: []string{"valkey"}, Form: "redis://[USER[:PASSWORD]@]HOST[/DATABASE]"},
			{Name: "rediss", Aliases: []string{"valkeys"}, Form: "rediss://..."},
		},
		About:      "Redis and Valkey, --store redis://[USER[:PASSWORD]@]HOST[:PORT],...[/DATABASE][?...] or rediss:// for TLS, take these parameters",
		Parameters: parameters,
		Notes: `The password comes from the URL, from password-file, or from REDISCLI_AUTH, as for redis-cli.
docs/redis.md says which settings and failovers are safe.`,
		TokenDigits: len("1795270861001002"), // microseconds of a server's clock
		DemoLease:   2 * time.Second,
		Parse:       func(scheme, raw string) (kind.Place, error) { return parse(scheme, raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

// String returns the URL without credentials.
func (r *Place) String() string {
	u := "redis"
	if r.TLS {
		u = "rediss"
	}
	u += "://"
	if r.User != "" || r.Password != "" {
		u += fault.Hidden + "@"
	}
	u += strings.Join(r.Hosts, ",")
	if r.Database != 0 {
		u += "/" + strconv.Itoa(r.Database)
	}
	prefix, cluster, wait := "", "", ""
	if r.Prefix != nil {
		prefix = *r.Prefix
	}
	if r.Cluster {
		cluster = "true"
	}
	if r.Wait > 0 {
		wait = strconv.Itoa(r.Wait)
	}
	return kind.With(u, "?", [2]string{"prefix", prefix}, [2]string{"wait", wait}, [2]string{"sentinel", r.Sentinel},
		[2]string{"cluster", cluster}, [2]string{"password-file", r.PasswordFile}, [2]string{"sentinel-user", r.SentinelUser},
		[2]string{"sentinel-password-file", r.SentinelPasswordFile}, [2]string{"tls-ca", r.CA}, [2]string{"tls-cert", r.Cert}, [2]string{"tls-key", r.Key})
}

// GoString is String.
func (r *Place) GoString() string { return r.String() }

// Product returns Redis.
func (r *Place) Product() string { return "Redis" }

// Pushes returns true.
func (r *Place) Pushes() bool { return true }

// Limits returns those of every prefix.
func (r *Place) Limits() (driver.Bounded, error) { return redisstore.Limits(), nil }

// Commands returns those of redis-cli.
func (r *Place) Commands(key string) kind.Commands {
	host, port := splitHost(r.Hosts[0])
	command := "redis-cli -h " + host + " -p " + port
	switch {
	case r.Sentinel != "": // the Sentinel only tells which server it is
		command = "redis-cli -h PRIMARY"
	case r.Cluster:
		command += " -c"
	}
	if r.TLS {
		command += " --tls"
	}
	if r.User != "" {
		command += " --user " + r.User + " --askpass"
	}
	if r.Database != 0 {
		command += " -n " + strconv.Itoa(r.Database)
	}
	name := "'" + strings.ReplaceAll(r.prefix()+key, "'", `'\''`) + "'"
	return kind.Commands{Look: command + " HGET " + name + " value", Delete: command + " DEL " + name}
}

func (r *Place) prefix() string {
	if r.Prefix == nil {
		return "tenure:"
	}
	return *r.Prefix
}

const defaultPort, sentinelPort = "6379", "26379"

// splitHost returns a host and its port.
func splitHost(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return strings.Trim(address, "[]"), defaultPort
	}
	return host, port
}

// parse reads a URL of the form
// redis://[user[:password]@]host[:port][,host[:port]...][/database][?...].
func parse(scheme, raw string) (*Place, error) {
	rest := strings.TrimPrefix(raw, scheme+"://")
	end := strings.IndexAny(rest+"/", "/?#")
	user, hosts, given := kind.CutLast(rest[:end], "@")
	if given {
		user += "@"
	}
	// Package url takes one host alone.
	u, err := url.Parse(scheme + "://" + user + "host" + rest[end:])
	if err != nil { // left out, since it may quote a part of the password
		return nil, fault.New("write a port as a number, and special characters of a password as %XX; "+likeThis, "is not a valid URL")
	}
	r := &Place{TLS: strings.HasSuffix(scheme, "s") && scheme != "redis", User: u.User.Username()}
	r.Password, _ = u.User.Password()
	switch {
	case hosts == "":
		return nil, fault.New(likeThis, "names no host")
	case u.Fragment != "":
		return nil, fault.New("write ? and # of a password as %3F and %23", "has a fragment behind #")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if !kind.ValidHost(host) {
			return nil, fault.New(likeThis, "a host is empty, or a port is not a number from 1 to 65535")
		}
		r.Hosts = append(r.Hosts, host)
	}
	if r.Database, err = database(u.Path); err != nil {
		return nil, err
	}
	query := kind.Query{
		Known: kind.Names(parameters), Hint: likeThis, Elsewhere: "give password-file=FILE, or REDISCLI_AUTH",
		IsCredential: func(key string) bool { return strings.Contains(key, "pass") || strings.Contains(key, "auth") },
	}
	if err := query.Each(u.RawQuery, r.set); err != nil {
		return nil, err
	}
	return r, r.check()
}

func database(path string) (int, error) {
	path = strings.Trim(path, "/")
	if path == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(path, 10, 16)
	if err != nil {
		return 0, fault.New("the path is the number of a database; the beginning of the keys is ?prefix=; "+likeThis, "the database is not a number")
	}
	return int(n), nil
}

func (r *Place) set(key, value string) (err error) {
	switch key {
	case "prefix":
		if len(value) > 100 || strings.ContainsAny(value, "\n\r") {
			return errors.New("must be one line of at most 100 bytes")
		}
		r.Prefix = &value
	case "wait":
		n, bad := strconv.ParseUint(value, 10, 8)
		if bad != nil || n == 0 {
			return errors.New("must be a number of replicas from 1 to 255")
		}
		r.Wait = int(n)
	case "cluster":
		r.Cluster, err = kind.Bool(value)
	default:
		*map[string]*string{
			"sentinel": &r.Sentinel, "sentinel-user": &r.SentinelUser, "sentinel-password-file": &r.SentinelPasswordFile,
			"password-file": &r.PasswordFile, "tls-ca": &r.CA, "tls-cert": &r.Cert, "tls-key": &r.Key,
		}[key] = value
	}
	return err
}

// check returns an error if settings contradict each other.
func (r *Place) check() error {
	switch {
	case r.Cluster && r.Sentinel != "":
		return fault.New("leave one of them out", "has cluster=true and sentinel=%s", fault.Shown(r.Sentinel))
	case r.Cluster && r.Database != 0:
		return fault.New("leave the database out", "has cluster=true and database %d; a Cluster has only 0", r.Database)
	case len(r.Hosts) > 1 && !r.Cluster && r.Sentinel == "":
		return fault.New("give sentinel=NAME if they are Sentinels, and cluster=true if they are a Cluster", "has several hosts")
	case r.Sentinel == "" && (r.SentinelUser != "" || r.SentinelPasswordFile != ""):
		return fault.New("give sentinel=NAME, the name of the primary", "has a parameter for Sentinels, but not sentinel")
	case r.Password != "" && r.PasswordFile != "":
		return fault.New("leave one of them out", "has a password and password-file")
	case !r.TLS && cmp.Or(r.CA, r.Cert, r.Key) != "":
		return fault.New("give rediss://, or leave them out", "has tls-ca, tls-cert or tls-key, which are for rediss://")
	case (r.Cert == "") != (r.Key == ""):
		return fault.New("give both, or none", "tls-cert and tls-key go together")
	}
	return nil
}

// addresses returns the hosts with their ports.
func (r *Place) addresses() (all []string) {
	port := defaultPort
	if r.Sentinel != "" {
		port = sentinelPort
	}
	for _, h := range r.Hosts {
		if _, _, err := net.SplitHostPort(h); err != nil {
			h = net.JoinHostPort(strings.Trim(h, "[]"), port)
		}
		all = append(all, h)
	}
	return all
}

var _ fmt.GoStringer = (*Place)(nil)
