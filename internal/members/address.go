package members

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// discovery begins the URL of processes that are found by a DNS name: each address of the name is a
// process.
const discovery = "dns+"

// maxAddresses bounds the addresses of one name.
const maxAddresses = 1000

// Address is where one process serves its report.
type Address struct {
	URL  string
	Host string // the name that the URL was found by; empty if the URL has it
}

// Check returns an error unless the text is an http or https URL with a host, or one that begins
// with "dns+". The error is a predicate: the caller puts the name of its setting in front.
func Check(text string) error {
	u, err := url.Parse(strings.TrimPrefix(text, discovery))
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("is no http or https URL")
	}
	return nil
}

// Resolve returns the addresses that a checked URL stands for now: itself, or with "dns+" one for
// each IP address of its host, sorted.
func Resolve(ctx context.Context, text string) ([]Address, error) {
	plain, found := strings.CutPrefix(text, discovery)
	if !found {
		return []Address{{URL: text}}, nil
	}
	u, err := url.Parse(plain)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		return nil, err
	}
	slices.Sort(ips)
	ips = slices.Compact(ips)
	if len(ips) > maxAddresses {
		return nil, fmt.Errorf("%s has more than %d addresses", u.Hostname(), maxAddresses)
	}
	all := make([]Address, len(ips))
	for i, ip := range ips {
		one := *u
		if one.Host = net.JoinHostPort(ip, u.Port()); u.Port() == "" {
			one.Host = strings.TrimSuffix(one.Host, ":")
		}
		all[i] = Address{one.String(), u.Host}
	}
	return all, nil
}

// Shown returns an address without its user, password and query.
func Shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that cannot be read"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Client returns a client for Read. It follows no redirect, with which a member could lead it to
// any address. It checks the certificate of a process that was found by a name against that name.
// The given function changes each request, and may be nil.
func Client(change func(*http.Request)) *http.Client {
	if change == nil {
		change = func(*http.Request) {}
	}
	return &http.Client{CheckRedirect: refuseRedirect, Transport: &transport{change: change, byName: map[string]*http.Transport{}}}
}

func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

type transport struct {
	change func(*http.Request)

	mu     sync.Mutex
	byName map[string]*http.Transport
}

// RoundTrip sends the request.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	t.change(r)
	if r.URL.Scheme != "https" || r.Host == "" || r.Host == r.URL.Host {
		return http.DefaultTransport.RoundTrip(r)
	}
	return t.named((&url.URL{Host: r.Host}).Hostname()).RoundTrip(r)
}

// idleConnections end soon, since a process that was found may be replaced at any time.
const idleConnections = 30 * time.Second

// named returns the transport to processes that were found by a name.
func (t *transport) named(name string) *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName[name] == nil {
		usual, ok := http.DefaultTransport.(*http.Transport)
		if !ok {
			usual = &http.Transport{}
		}
		one := usual.Clone()
		one.IdleConnTimeout = idleConnections
		if one.TLSClientConfig == nil {
			one.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		one.TLSClientConfig.ServerName = name
		t.byName[name] = one
	}
	return t.byName[name]
}
