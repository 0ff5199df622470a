package k8slease

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/reread"
)

// client sends requests to the API server. It retries none, except after an answer that the server
// did not begin it.
type client struct {
	http      *http.Client
	server    *url.URL
	namespace string
	// noteDate is called with the time of each answer that is no error. It returns false if that
	// time is not credible.
	noteDate func(time.Time) bool
	// refused is called when the server does not accept the credentials.
	refused func()
	// credentials names those of the configuration.
	credentials func() string
}

const (
	// pingAfter is the silence of a connection after which the client asks whether it still works,
	// and answerWithin is the time for that answer. A server that is gone without a word would
	// otherwise hold up requests for as long as the lease.
	pingAfter, answerWithin = time.Second, 2 * time.Second
	// connectWithin bounds each of the two steps to a new connection.
	connectWithin = 5 * time.Second
	// leastPause is the shortest pause before a request that the server was too busy for.
	leastPause = 100 * time.Millisecond
	// maxStatus bounds the answers that are errors.
	maxStatus = 64 << 10
)

func newClient(config *rest.Config, namespace string) (*client, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	c, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	base := c.Transport
	if base == nil {
		if base, err = connections(c); err != nil {
			return nil, err
		}
	}
	if file := c.BearerTokenFile; file != "" {
		base = tokenOf(file, c.BearerToken, base)
		c.BearerToken, c.BearerTokenFile = "", ""
	}
	through, err := transport.HTTPWrappersForConfig(c, base)
	if err != nil {
		return nil, err
	}
	own := rest.CopyConfig(config)
	return &client{
		http: &http.Client{Transport: through, CheckRedirect: stay}, server: server, namespace: namespace,
		credentials: func() string { return credentials(own) },
	}, nil
}

// stay follows no redirect: it would send a write to another server, perhaps a second time.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// connections returns a transport of its own, with pings. Those that rest.HTTPClientFor returns
// notice a lost connection after 45 s, and are shared with other clients of the process.
func connections(c *transport.Config) (http.RoundTripper, error) {
	tls, err := transport.TLSConfigFor(c)
	if err != nil {
		return nil, err
	}
	dial := (&net.Dialer{Timeout: connectWithin}).DialContext
	if c.DialHolder != nil {
		dial = c.DialHolder.Dial
	}
	proxy := http.ProxyFromEnvironment
	if c.Proxy != nil {
		proxy = c.Proxy
	}
	return &http.Transport{
		TLSClientConfig: tls, DialContext: dial, Proxy: proxy, TLSHandshakeTimeout: connectWithin,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
		DisableCompression: c.DisableCompression,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: answerWithin},
	}, nil
}

// roundTripper is a function that sends a request.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// tokenOf reads the token from its file for each request. Package rest would keep it for a minute,
// also after the server has refused it.
func tokenOf(file, first string, next http.RoundTripper) http.RoundTripper {
	tokens := reread.New(first, func(context.Context) (string, error) {
		text, err := os.ReadFile(file)
		token := strings.TrimSpace(string(text))
		if err == nil && token == "" {
			err = errors.New("the file is empty")
		}
		return token, err
	}, nil)
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+tokens.Get(r.Context()))
		return next.RoundTrip(r)
	})
}

// path returns the URL of a Lease, or of all Leases of the namespace if the name is empty.
func (c *client) path(name string, query url.Values) string {
	u := c.server.JoinPath("apis/coordination.k8s.io/v1/namespaces", c.namespace, "leases", name)
	u.RawQuery = query.Encode()
	return u.String()
}

// call sends one request, and decodes the answer into out. If the server answers that it is too
// busy to begin the request, call sends it again after the time that the server names, as long as
// the context allows that.
func (c *client) call(ctx context.Context, method, url string, in, out any) error {
	body, err := c.send(ctx, method, url, in)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return fmt.Errorf("the answer is not that of an API server: %w", err)
	}
	// So that the connection can be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxStatus))
	return nil
}

// send sends one request, as call does, and returns the body of the answer. After a second delivery
// of a write no refusal is certain: a proxy may have answered 429 after the server had applied the
// first one.
func (c *client) send(ctx context.Context, method, url string, in any) (io.ReadCloser, error) {
	var text []byte
	if in != nil {
		var err error
		if text, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	for again := false; ; again = true {
		body, err := c.once(ctx, method, url, text)
		var s *StatusError
		if !errors.As(err, &s) {
			return body, err
		}
		s.open = again && in != nil
		if s.Code != http.StatusTooManyRequests {
			return nil, err
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < s.after {
			return nil, err
		}
		select {
		case <-time.After(s.after):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// errNoDate is the error of a read without the time that keeps terms growing.
var errNoDate = errors.New("the answer has no credible Date, without which terms could fall: let the proxy before the " +
	"API server pass the header Date, and set the clock of the server")

func (c *client) once(ctx context.Context, method, url string, text []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if len(text) > 0 {
		request.Header.Set("Content-Type", "application/json")
		request.GetBody = nil // so that package http cannot send the write again
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < 300 {
		date, err := http.ParseTime(answer.Header.Get("Date"))
		if known := err == nil && c.noteDate(date); !known && method == http.MethodGet {
			_ = answer.Body.Close()
			return nil, errNoDate
		}
		return answer.Body, nil
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode == http.StatusUnauthorized {
		c.refused()
	}
	return nil, c.readStatus(answer)
}

// StatusError is an answer of the API server that is an error.
type StatusError struct {
	// Code is that of HTTP.
	Code int
	// Reason is the server's word for it, such as Conflict. It is empty if the answer does not come
	// from an API server.
	Reason string
	// Message is the server's text.
	Message string
	// Kind is the resource that the error is about, such as leases or namespaces.
	Kind string

	after time.Duration
	// open: an earlier delivery of the same write may have been applied.
	open bool
	// credentials names those of the client.
	credentials string
}

func (c *client) readStatus(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxStatus))
	if err != nil {
		return err
	}
	s := parseStatus(answer.StatusCode, answer.Header.Get("Retry-After"), text)
	s.credentials = c.credentials()
	return s
}

func parseStatus(code int, retryAfter string, text []byte) *StatusError {
	s := &StatusError{Code: code, after: time.Second}
	var status struct {
		Kind, Message, Reason string
		Code                  int
		Details               struct{ Kind string }
	}
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		s.Reason, s.Message, s.Kind = status.Reason, status.Message, status.Details.Kind
		s.Code = cmp.Or(code, status.Code)
	}
	if seconds, err := strconv.ParseUint(retryAfter, 10, 16); err == nil {
		s.after = max(leastPause, time.Duration(seconds)*time.Second)
	}
	return s
}

// Error names the remedy where there is one.
func (e *StatusError) Error() string {
	said := cmp.Or(e.Message, http.StatusText(e.Code))
	switch {
	case e.Code == http.StatusUnauthorized, e.Code == http.StatusForbidden && e.Reason != "":
		return e.denied(said)
	case e.Code == http.StatusNotFound && e.Kind == "namespaces":
		return said + ": create the namespace, or name another one"
	case e.Reason == "":
		return fmt.Sprintf("the answer is %d %s, and not that of an API server: check the address of the server", e.Code, said)
	}
	return fmt.Sprintf("%s (%d %s)", said, e.Code, e.Reason)
}

// Is reports whether the target is driver.ErrDenied or driver.ErrConflict and says the same.
func (e *StatusError) Is(target error) bool {
	switch {
	case e.open:
		return false
	case target == driver.ErrDenied:
		return e.Reason != "" && (e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden)
	case target == driver.ErrConflict:
		return e.Code == http.StatusConflict && (e.Reason == "Conflict" || e.Reason == "AlreadyExists")
	}
	return false
}

// missing reports whether the server certainly says that there is no such Lease.
func missing(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && !s.open && s.Code == http.StatusNotFound && s.Reason == "NotFound" && s.Kind == "leases"
}
