package gcsobject

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/gcsfake"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// source makes tokens for one hour.
type source struct {
	s *site

	mu    sync.Mutex // for calls that were abandoned
	made  int
	fault error
	hangs bool
}

func (m *source) find(ctx context.Context) (*oauth2.Token, error) {
	if m.hangs {
		time.Sleep(time.Hour)
	}
	if m.fault != nil {
		return nil, m.fault
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	name := "token" + strings.Repeat("x", m.made)
	m.s.Allow(name, gcsfake.All...)
	return &oauth2.Token{AccessToken: name, Expiry: time.Now().Add(time.Hour)}, nil
}

// play runs a test in a bubble, on a store with tokens of the source.
func play(t *testing.T, f func(t *testing.T, store *Store, m *source, reports *[]error)) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.Allow("admin", gcsfake.All...)
		m := &source{s: s}
		store, err := New(s.network.Client(), "bucket", WithEndpoint(s.url))
		must(t, err)
		var reports []error
		store.tokens = newTokens(m.find, func(err error) { reports = append(reports, err) })
		f(t, store, m, &reports)
	})
}

func read(t *testing.T, store *Store) error {
	_, err := store.Read(wait.Context(t), "key")
	return err
}

// TestTokensAreReplacedEarly: once, and before the end of the old one.
func TestTokensAreReplacedEarly(t *testing.T) {
	play(t, func(t *testing.T, store *Store, m *source, _ *[]error) {
		for i, step := range []struct{ pass, made int }{{0, 1}, {50, 1}, {7, 2}, {1, 2}, {120, 3}} {
			time.Sleep(time.Duration(step.pass) * time.Minute)
			if err := read(t, store); err != nil || m.made != step.made {
				t.Errorf("step %d: %d tokens, %v", i, m.made, err)
			}
		}
	})
}

// TestFailedReplacementCostsNoCall while the old token is valid, and is reported once.
func TestFailedReplacementCostsNoCall(t *testing.T) {
	play(t, func(t *testing.T, store *Store, m *source, reports *[]error) {
		must(t, read(t, store))
		time.Sleep(57 * time.Minute)
		m.fault = errors.New("the metadata server is away")
		for range 5 {
			must(t, read(t, store))
			time.Sleep(20 * time.Second)
		}
		if len(*reports) != 1 {
			t.Errorf("reports: %v", *reports)
		}
		time.Sleep(5 * time.Minute)
		if err := read(t, store); !errors.Is(err, m.fault) || errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "nothing was sent") {
			t.Errorf("without a token: %v", err)
		}
	})
}

// TestHangingReplacement delays a call by a second at most, and later calls do not wait for it.
func TestHangingReplacement(t *testing.T) {
	play(t, func(t *testing.T, store *Store, m *source, _ *[]error) {
		must(t, read(t, store))
		time.Sleep(57 * time.Minute)
		m.hangs = true
		for i, most := range []time.Duration{replaceWithin, 0} {
			began := time.Now()
			must(t, read(t, store))
			if took := time.Since(began); took > most {
				t.Errorf("read %d takes %v", i, took)
			}
		}
		time.Sleep(5 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := store.Read(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a token: %v", err)
		}
		time.Sleep(2 * time.Hour) // the abandoned calls end
	})
}

// TestRevokedToken: the call fails, and is not taken for a missing right. The next call gets
// another token. If the server refuses that, too, a right is missing.
func TestRevokedToken(t *testing.T) {
	play(t, func(t *testing.T, store *Store, m *source, _ *[]error) {
		must(t, read(t, store))
		m.s.Revoke("tokenx")
		if err := read(t, store); err == nil || errors.Is(err, driver.ErrDenied) {
			t.Errorf("after the end of the token: %v", err)
		}
		must(t, read(t, store))
		store.tokens.find = func(context.Context) (*oauth2.Token, error) { return &oauth2.Token{AccessToken: "unknown"}, nil }
		m.s.Revoke("tokenxx")
		_ = read(t, store)
		if err := read(t, store); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("with an unknown token: %v", err)
		}
	})
}

// TestNoCredentials names the ways to give them.
func TestNoCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/none.json")
	store, err := FromEnvironment("bucket")
	must(t, err)
	if err := read(t, store); err == nil || !strings.Contains(err.Error(), "gcloud auth application-default login") {
		t.Error(err)
	}
}

func TestEmulator(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:4443")
	store, err := FromEnvironment("bucket")
	must(t, err)
	if store.endpoint != "http://127.0.0.1:4443" || store.tokens != nil {
		t.Errorf("endpoint %s with tokens %v", store.endpoint, store.tokens)
	}
}
