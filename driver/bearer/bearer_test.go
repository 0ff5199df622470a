package bearer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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

// TestSearchEnds: the context of a search ends after a minute, also if that of its call goes on.
func TestSearchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bearer.New(func(ctx context.Context) (*bearer.Token, error) { <-ctx.Done(); return nil, ctx.Err() }, nil)
		began := time.Now()
		if _, err := sign(t.Context(), s); err == nil || time.Since(began) != time.Minute {
			t.Errorf("the search ends after %v: %v", time.Since(began), err)
		}
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

// TestRefusedWhileReplaced: a request with an old token, which the server took before, is refused
// after the token was replaced, and so is a second one. The new token stays.
func TestRefusedWhileReplaced(t *testing.T) {
	play(t, func(t *testing.T, s *bearer.Source, e *endpoint, _ *[]error) {
		first, _ := sign(t.Context(), s)
		s.Accepted(first)
		time.Sleep(57 * time.Minute)
		second, err := sign(t.Context(), s)
		if err != nil || second == first {
			t.Fatalf("the next token is %v, %v", second, err)
		}
		for range 2 {
			if err := s.Refused(first, errors.New("401")); errors.Is(err, driver.ErrDenied) {
				t.Errorf("after the end of the token: %v", err)
			}
		}
		if third, err := sign(t.Context(), s); third != second {
			t.Errorf("the new token is replaced by %v, %v", third, err)
		}
		if err := s.Refused(second, errors.New("401")); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("with an unknown token: %v", err)
		}
	})
}

// TestLateToken comes from a search that was abandoned, after a later search has got a token.
func TestLateToken(t *testing.T) {
	const hour = time.Hour
	for why, c := range map[string]struct {
		ends    time.Duration // of the late token, after it comes
		text    string
		refused bool // the token of the later search
		keeps   bool // the late token
	}{
		"it ends earlier":                      {ends: hour / 2, text: "late"},
		"it ends later":                        {ends: 2 * hour, text: "late", keeps: true},
		"it ends later, but was refused":       {ends: 2 * hour, text: "old"},
		"it has no end":                        {text: "late", keeps: true},
		"it ends earlier, and is the only one": {ends: hour / 2, text: "late", refused: true, keeps: true},
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { playLate(t, c.ends, c.text, c.refused, c.keeps) })
		})
	}
}

func playLate(t *testing.T, ends time.Duration, text string, refused, keeps bool) {
	var searches atomic.Int32
	s := bearer.New(func(context.Context) (*bearer.Token, error) {
		n := searches.Add(1)
		switch n {
		case 1:
			return &bearer.Token{Text: "old", Ends: time.Now().Add(time.Hour)}, nil
		case 2:
			time.Sleep(time.Minute)
			late := &bearer.Token{Text: text}
			if ends > 0 {
				late.Ends = time.Now().Add(ends)
			}
			return late, nil
		}
		return &bearer.Token{Text: fmt.Sprint("new", n), Ends: time.Now().Add(time.Hour)}, nil
	}, nil)
	old, _ := sign(t.Context(), s)
	s.Accepted(old)
	time.Sleep(57 * time.Minute)
	if token, err := sign(t.Context(), s); token != old { // the second search is abandoned
		t.Fatalf("during the search: %v, %v", token, err)
	}
	_ = s.Refused(old, errors.New("401"))
	fresh, err := sign(t.Context(), s)
	if err != nil || fresh.Text != "new3" {
		t.Fatalf("the later search: %v, %v", fresh, err)
	}
	s.Accepted(fresh)
	if refused {
		_ = s.Refused(fresh, errors.New("401"))
	}
	time.Sleep(2 * time.Minute) // the second search ends
	token, err := sign(t.Context(), s)
	if err != nil || (token.Text == text) != keeps || !keeps && token != fresh {
		t.Errorf("the present token is %v, %v", token, err)
	}
	if err := s.Refused(fresh, errors.New("401")); errors.Is(err, driver.ErrDenied) {
		t.Errorf("the later token had been accepted: %v", err)
	}
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
