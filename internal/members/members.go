// Package members reads, for people, what the processes of an election say of their candidates.
// Each process says what it likes, so everything is bounded, and no decision depends on it.
package members

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/internal/record"
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

// The limits of the report of one process, which may be faulty.
const (
	maxReport  = 1 << 20 // in bytes
	maxMembers = 10_000
	maxReason  = 1 << 10 // in bytes
)

// The ways in which a candidate is known, besides the terms that it has led.
const (
	Answered = "answered" // it answered over the store
	Reported = "reported" // its process reports it at a URL
)

// Once leaves out the reports of candidates that have also answered. The function of returns how an
// entry is known, and its incarnation.
func Once[T any](all []T, of func(T) (known, incarnation string)) []T {
	answered := map[string]bool{"": false}
	for _, one := range all {
		if known, incarnation := of(one); known == Answered && incarnation != "" {
			answered[incarnation] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool {
		known, incarnation := of(one)
		return known == Reported && answered[incarnation]
	})
}

// maxReading is how many reports are read at once.
const maxReading = 32

// ReadAll reads the reports of all processes that the URLs stand for now. It calls found with the
// addresses of each URL, or with the reason why they are not known, and took with the report at
// each address, or with the reason why there is none. The calls of took may be concurrent.
func ReadAll(
	ctx context.Context, client *http.Client, urls []string, wanted func(election string) bool,
	found func(url string, at []Address, err error), took func(at Address, all []admin.Member, err error),
) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	slots := make(chan struct{}, maxReading)
	for _, url := range urls {
		at, err := Resolve(ctx, url)
		found(url, at, err)
		for _, one := range at {
			slots <- struct{}{}
			tasks.Go(func() {
				defer func() { <-slots }()
				all, err := Read(ctx, client, one, wanted)
				took(one, all, err)
			})
		}
	}
}

// Read requests the report at an address, see dashboard.Report. Members of elections that are not
// wanted are left out. The client should follow no redirect.
func Read(ctx context.Context, client *http.Client, at Address, wanted func(election string) bool) ([]admin.Member, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL, nil)
	if err != nil {
		return nil, err
	}
	request.Host = at.Host
	answer, err := client.Do(request)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", http.StatusText(answer.StatusCode))))
	}
	return decode(json.NewDecoder(io.LimitReader(answer.Body, maxReport)), wanted)
}

func decode(from *json.Decoder, wanted func(election string) bool) ([]admin.Member, error) {
	if begin, err := from.Token(); err != nil || begin != json.Delim('[') {
		return nil, errors.New("it is no report: it does not begin with [")
	}
	var all []admin.Member
	for from.More() {
		var m admin.Member
		if err := from.Decode(&m); err != nil {
			return nil, fmt.Errorf("it is no report: %w", err)
		}
		if !wanted(m.Election) {
			continue
		}
		if err := check(&m); err != nil {
			return nil, fmt.Errorf("it is no report: %w", err)
		}
		if all = append(all, m); len(all) > maxMembers {
			return nil, fmt.Errorf("it reports more than %d members", maxMembers)
		}
	}
	if _, err := from.Token(); err != nil {
		return nil, fmt.Errorf("it is no report: %w", err)
	}
	return all, nil
}

// Answers returns the candidates that have answered, see driver.Presence. What is no Member of a
// wanted election is left out.
func Answers(texts [][]byte, wanted func(election string) bool) []admin.Member {
	var all []admin.Member
	for _, text := range texts[:min(len(texts), maxMembers)] {
		var m admin.Member
		if json.Unmarshal(text, &m) == nil && wanted(m.Election) && check(&m) == nil {
			all = append(all, m)
		}
	}
	return all
}

// check returns an error if a text is too long, and shortens the problem.
func check(m *admin.Member) error {
	if err := errors.Join(record.CheckName(m.ID), record.CheckName(m.State)); err != nil {
		return fmt.Errorf("an ID or a state %w", err)
	}
	if err := errors.Join(record.CheckName(m.Address), record.CheckName(m.Incarnation)); err != nil {
		return fmt.Errorf("an address %w", err)
	}
	m.Problem = Shortened(m.Problem)
	return nil
}

// Shortened shortens a reason that another process gave.
func Shortened(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// reason returns the error without the address, which may hold a password.
func reason(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
