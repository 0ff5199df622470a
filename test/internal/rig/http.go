package rig

import (
	"net/http"
	"testing"
	"time"

	"github.com/tenure-go/tenure/test/internal/relay"
)

// Relay returns a relay to a server, by its URL, for the length of a test.
func Relay(t testing.TB, server string) *relay.Relay {
	t.Helper()
	r, err := relay.New(server)
	Must(t, err)
	t.Cleanup(r.Close)
	return r
}

// HTTPClient returns a client with connections of its own, for the length of a test.
func HTTPClient(t testing.TB) *http.Client {
	// Idle connections cost goroutines here and in a relay. These must not count as goroutines of
	// calls that hang.
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// HTTPClient returns a client that counts requests, by the kind that the function returns.
func (c Connector) HTTPClient(kind func(*http.Request) string) *http.Client {
	return &http.Client{Transport: counting{
		&http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}, func(r *http.Request) { c.Count(kind(r)) },
	}}
}

// Method is a kind of requests for Connector.HTTPClient.
func Method(r *http.Request) string { return r.Method }

type counting struct {
	http.RoundTripper
	count func(*http.Request)
}

// RoundTrip sends a request.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count(r)
	return c.RoundTripper.RoundTrip(r)
}
