package object

import (
	"net/http"
	"time"
)

// NewTransport returns the transport of one store. It goes back to a connection for the next
// renewal, and gives up one that does not open.
func NewTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 100
	t.IdleConnTimeout = 2 * time.Minute
	return t
}

// WithoutRedirects returns a copy of a client that takes a redirect for the answer.
func WithoutRedirects(client *http.Client) *http.Client {
	plain := *client
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &plain
}
