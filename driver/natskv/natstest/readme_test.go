package natstest

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/internal/test/natsnet"
)

// work is a leader's work.
type work = func(ctx context.Context, token uint64) error

// sample is the code in the README. The core's TestReadmeShowsTheSample compares the two.
func sample(ctx context.Context, js jetstream.JetStream, serve work) error {
	// The README begins here.
	store, err := natskv.Open(ctx, js, "ELECTIONS", natskv.Create())
	if err != nil {
		return err
	}
	e, err := tenure.New(store, "billing", tenure.Config{})
	if err != nil {
		return err
	}
	return e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		// ctx ends when the work should: at shutdown, for a hand-over, or when the term is lost.
		return serve(ctx, term.Token())
	})
}

// TestReadme runs the sample. An earlier leader has released, so the sample leads at once.
func TestReadme(t *testing.T) {
	InBubble(t, func(t *testing.T) {
		js := natsnet.JetStream(t, natsnet.Connect(t, StartServer(t).ClientURL()))
		earlier := release(t, js)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var token uint64
		err := sample(ctx, js, func(ctx context.Context, of uint64) error {
			token = of
			stop()
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil || token <= earlier {
			t.Errorf("led with the token %d after %d, and returned %v", token, earlier, err)
		}
	})
}

// release leads and releases the lease, and returns the token.
func release(t *testing.T, js jetstream.JetStream) uint64 {
	t.Helper()
	store, err := natskv.Open(t.Context(), js, "ELECTIONS", natskv.Create(), natskv.Pristine())
	if err != nil {
		t.Fatal(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{})
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	return term.Token()
}
