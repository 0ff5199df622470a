package gcsobject

import (
	"context"
	"errors"
	"strings"
	"testing"

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
