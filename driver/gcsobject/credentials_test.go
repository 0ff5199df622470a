package gcsobject

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/bearer"
	"github.com/tenure-go/tenure/internal/test/gcsfake"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestRevokedToken: the call fails, and is not taken for a missing right. The next call gets
// another token. If the server refuses that, too, a right is missing.
func TestRevokedToken(t *testing.T) {
	s := start(t)
	s.Allow("first", gcsfake.All...)
	s.Allow("second", gcsfake.All...)
	store, err := New(s.network.Client(), "bucket", WithEndpoint(s.url))
	must(t, err)
	tokens := []string{"first", "second", "unknown"}
	store.tokens = bearer.New(func(context.Context) (*bearer.Token, error) {
		next := tokens[0]
		tokens = tokens[1:]
		return &bearer.Token{Text: next}, nil
	}, nil)
	must(t, read(t, store))
	for _, token := range []string{"first", "second"} {
		s.Revoke(token)
		if err := read(t, store); err == nil || errors.Is(err, driver.ErrDenied) {
			t.Errorf("after the end of the token: %v", err)
		}
		if token == "first" {
			must(t, read(t, store))
		}
	}
	if err := read(t, store); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("with an unknown token: %v", err)
	}
}

func read(t *testing.T, store *Store) error {
	_, err := store.Read(wait.Context(t), "key")
	return err
}

// silence gives no answer, as an endpoint behind a firewall.
type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestSearchEnds after a minute, also for credentials that make their request without a context.
func TestSearchEnds(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "me@example.com", "token_uri": "https://token.example.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	must(t, err)
	file := filepath.Join(t.TempDir(), "key.json")
	must(t, os.WriteFile(file, text, 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := defaultToken(t.Context(), silence{})
		if took := time.Since(began); err == nil || took != time.Minute {
			t.Errorf("the search ends after %v: %v", took, err)
		}
	})
}

// tokens is a source that hangs for a while.
type tokens struct{ takes time.Duration }

func (s tokens) Token() (*oauth2.Token, error) {
	time.Sleep(s.takes)
	return &oauth2.Token{AccessToken: "first"}, nil
}

// TestClientThatHangs: a client of package oauth2 waits for its token as long as the endpoint
// takes, but calls end with their contexts.
func TestClientThatHangs(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Store) error{
		"read": func(ctx context.Context, s *Store) error { _, err := s.Read(ctx, "key"); return err },
		"write": func(ctx context.Context, s *Store) error {
			_, err := s.CompareAndSwap(ctx, "key", "", []byte("value"))
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t)
			client := context.WithValue(t.Context(), oauth2.HTTPClient, s.network.Client())
			store, err := New(oauth2.NewClient(client, tokens{time.Hour}), "bucket", WithEndpoint(s.url))
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			if err := call(ctx, store); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("the %s ends after %v: %v", name, time.Since(began), err)
			}
			time.Sleep(3 * time.Hour) // the abandoned call ends
			if n := s.Requests(http.MethodGet) + s.Requests(http.MethodPost); n != 0 {
				t.Errorf("%d requests were sent after the end of the %s", n, name)
			}
		})
	}
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
