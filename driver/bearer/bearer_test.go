package bearer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/bearer"
)

// endpoint makes tokens for one hour.
type endpoint struct {
	mu    sync.Mutex // for calls that were abandoned
	made  int
	fault error
	hangs bool
}

func (e *endpoint) find(context.Context) (*bearer.Token, error) {
	if e.hangs {
		time.Sleep(time.Hour)
	}
	if e.fault != nil {
		return nil, e.fault
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	return &bearer.Token{Text: fmt.Sprint("token", e.made), Ends: time.Now().Add(time.Hour)}, nil
}

// play runs a test in virtual time.
func play(t *testing.T, f func(t *testing.T, s *bearer.Source, e *endpoint, reports *[]error)) {
	synctest.Test(t, func(t *testing.T) {
		e, reports := new(endpoint), []error(nil)
		f(t, bearer.New(e.find, func(err error) { reports = append(reports, err) }), e, &reports)
	})
}

// sign returns the token of a request.
func sign(ctx context.Context, s *bearer.Source) (*bearer.Token, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://host/", nil)
	if err != nil {
		return nil, err
	}
	token, err := s.Sign(ctx, r)
	if err == nil && r.Header.Get("Authorization") != "Bearer "+token.Text {
		return nil, fmt.Errorf("the header is %q, the token %q", r.Header.Get("Authorization"), token.Text)
	}
	return token, err
}

// TestReplacedEarly: once, and before the end of the old one.
func TestReplacedEarly(t *testing.T) {
	play(t, func(t *testing.T, s *bearer.Source, e *endpoint, _ *[]error) {
		for i, step := range []struct{ pass, made int }{{0, 1}, {50, 1}, {7, 2}, {1, 2}, {120, 3}} {
			time.Sleep(time.Duration(step.pass) * time.Minute)
			if _, err := sign(t.Context(), s); err != nil || e.made != step.made {
				t.Errorf("step %d: %d tokens, %v", i, e.made, err)
			}
		}
	})
}

// TestFailedReplacementCostsNoCall while the old token is valid, and is reported once.
func TestFailedReplacementCostsNoCall(t *testing.T) {
	play(t, func(t *testing.T, s *bearer.Source, e *endpoint, reports *[]error) {
		_, _ = sign(t.Context(), s)
		time.Sleep(57 * time.Minute)
		e.fault = errors.New("the endpoint is away")
		for range 5 {
			if _, err := sign(t.Context(), s); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
		}
		if len(*reports) != 1 {
			t.Errorf("reports: %v", *reports)
		}
		time.Sleep(5 * time.Minute)
		if _, err := sign(t.Context(), s); !errors.Is(err, e.fault) || errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "nothing was sent") {
			t.Errorf("without a token: %v", err)
		}
	})
}

// TestHangingReplacement delays a call by a second at most, and later calls do not wait for it.
func TestHangingReplacement(t *testing.T) {
	play(t, func(t *testing.T, s *bearer.Source, e *endpoint, _ *[]error) {
		_, _ = sign(t.Context(), s)
		time.Sleep(57 * time.Minute)
		e.hangs = true
		for i, most := range []time.Duration{bearer.ReplaceWithin, 0} {
			began := time.Now()
			if _, err := sign(t.Context(), s); err != nil || time.Since(began) > most {
				t.Errorf("call %d takes %v: %v", i, time.Since(began), err)
			}
		}
		time.Sleep(5 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sign(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a token: %v", err)
		}
		time.Sleep(2 * time.Hour) // the abandoned calls end
	})
}

// TestRefused: a token that the server took before has ended early, which is no missing right.
func TestRefused(t *testing.T) {
	play(t, func(t *testing.T, s *bearer.Source, e *endpoint, _ *[]error) {
		first, _ := sign(t.Context(), s)
		s.Accepted(first)
		if err := s.Refused(first, errors.New("401")); errors.Is(err, driver.ErrDenied) {
			t.Errorf("after the end of the token: %v", err)
		}
		second, err := sign(t.Context(), s)
		if err != nil || second.Text == first.Text {
			t.Errorf("the next token is %v, %v", second, err)
		}
		if err := s.Refused(second, errors.New("401")); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("with an unknown token: %v", err)
		}
	})
}

func TestNil(t *testing.T) {
	var s *bearer.Source
	if token, err := s.Sign(t.Context(), nil); token != nil || err != nil {
		t.Errorf("a token %v, %v", token, err)
	}
	s.Accepted(nil)
	if err := s.Refused(nil, errors.New("401")); !errors.Is(err, driver.ErrDenied) {
		t.Error(err)
	}
}
