// Package bearer holds the access token of a client, and replaces it before it ends. Use it in
// adapters of services whose tokens last an hour or so: a token endpoint that fails or hangs must
// not cost a leader its lease while the old token is still valid.
package bearer

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

// Token is an access token.
type Token struct {
	// Text is sent with requests.
	Text string
	// Ends is the end of its validity; zero: it has none.
	Ends time.Time

	proved bool // a server has accepted it; the mutex of the source guards this
}

// Valid reports whether the token can be used for the next request.
func (t *Token) Valid() bool {
	return t != nil && t.Text != "" && (t.Ends.IsZero() || time.Until(t.Ends) > leeway)
}

// outlives reports whether the token ends after another one.
func (t *Token) outlives(other *Token) bool {
	return !other.Ends.IsZero() && (t.Ends.IsZero() || t.Ends.After(other.Ends))
}

const (
	// leeway is the time that a request may be under way.
	leeway = 10 * time.Second
	// early is how long before its end a token is replaced. The metadata server of a machine of
	// Google gives another one in the last five minutes.
	early = 4 * time.Minute
	// ReplaceWithin is how long a replacement may delay a request while the old token is still
	// valid.
	ReplaceWithin = time.Second
	// SearchWithin is how long the search for a token may take.
	SearchWithin = time.Minute
	// pause is the time between two attempts while the old token is still valid.
	pause = 15 * time.Second
)

// Source holds the present token. It must be made by New. A nil *Source adds nothing to requests.
// Its methods may be called from many goroutines.
type Source struct {
	find   func(context.Context) (*Token, error)
	report func(error)
	calls  abandon.Calls
	turn   chan struct{} // holds a value while a token is sought

	mu       sync.Mutex
	last     *Token
	refused  string    // the text of the token that the server refused last
	again    time.Time // when it may be replaced
	reported string
}

// New returns a source, and calls nothing. The function find gets a new *Token; its context ends
// after SearchWithin, and its call is abandoned when that of the request ends. If report is not
// nil, it is called when a token cannot be replaced while the last one is still valid, once for
// each reason.
func New(find func(context.Context) (*Token, error), report func(error)) *Source {
	if report == nil {
		report = func(error) {}
	}
	return &Source{find: find, report: report, turn: make(chan struct{}, 1)}
}

// Sign adds a token to a request, and returns it. If there is no valid one, it waits for a token;
// its error then says that nothing was sent.
func (s *Source) Sign(ctx context.Context, r *http.Request) (*Token, error) {
	if s == nil {
		return nil, nil
	}
	token, err := s.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("nothing was sent: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+token.Text)
	return token, nil
}

// get returns a valid token. It replaces a token that ends soon, but does not wait long for that.
func (s *Source) get(ctx context.Context) (*Token, error) {
	last, replace := s.present()
	if last != nil && !replace {
		return last, nil
	}
	within := ctx
	if last != nil {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, ReplaceWithin)
		defer cancel()
	}
	now, err := s.renew(within)
	switch {
	case err == nil:
		return now, nil
	case last == nil:
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	s.postpone(err)
	return last, nil
}

// present returns the token while it is valid, and whether it is to be replaced now.
func (s *Source) present() (last *Token, replace bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.last.Valid() {
		return nil, true
	}
	ends := s.last.Ends
	return s.last, !ends.IsZero() && time.Until(ends) < early && time.Now().After(s.again)
}

// renew gets a token, one call at a time. A token that comes too late for its caller is for the
// next one.
func (s *Source) renew(ctx context.Context) (*Token, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-s.turn }()
	if last, replace := s.present(); last != nil && !replace { // another call has got it
		return last, nil
	}
	find := func() (*Token, error) {
		search, cancel := context.WithTimeout(context.WithoutCancel(ctx), SearchWithin)
		defer cancel()
		return s.find(search)
	}
	now, err := abandon.Run(ctx, &s.calls, find, s.keepLate)
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keep(now)
	}
	return now, err
}

// keep is called under the lock.
func (s *Source) keep(now *Token) {
	s.last, s.reported, s.again = now, "", time.Now().Add(pause)
}

// keepLate keeps the token of an abandoned search, unless a later search has found a better one.
func (s *Source) keepLate(late *Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if late.Text != s.refused && (!s.last.Valid() || late.outlives(s.last)) {
		s.keep(late)
	}
}

func (s *Source) postpone(err error) {
	s.mu.Lock()
	known := s.reported == err.Error()
	s.reported, s.again = err.Error(), time.Now().Add(pause)
	s.mu.Unlock()
	if !known {
		s.report(err)
	}
}

// Accepted notes that the server takes this token.
func (s *Source) Accepted(token *Token) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	token.proved = true
}

// Refused drops a token that the server refused by the error. If the server took it before, it has
// ended early, and the next request gets another one. Otherwise the result wraps driver.ErrDenied.
func (s *Source) Refused(token *Token, err error) error {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = token.Text
		if s.last == token {
			s.last = nil
		}
		if token.proved {
			return fmt.Errorf("the access token has ended early; the next request gets another one: %w", err)
		}
	}
	return fmt.Errorf("%w: the server takes no such credentials: %w", driver.ErrDenied, err)
}
