package fenced_test

import (
	"context"
	"errors"
	"log"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/fenced"
)

// The leader first takes the fence. Then it reads what earlier leaders have published. Then it
// works.
func Example() {
	ctx := context.Background()
	nc, err := nats.Connect("nats://nats-1:4222,nats://nats-2:4222")
	if err != nil {
		log.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	store, err := natskv.Open(ctx, js, "ELECTIONS")
	if err != nil {
		log.Fatal(err)
	}
	election, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		// the stream listens on payments.>
		p, err := fenced.Open(ctx, term, js, "PAYMENTS", "payments.fence")
		if err != nil {
			return err
		}
		_, err = p.Publish(ctx, &nats.Msg{Subject: "payments.debit", Data: []byte("alice 30")})
		switch {
		case errors.Is(err, fenced.ErrUnknown):
			return err // read the stream before publishing it again
		case errors.Is(err, tenure.ErrLost):
			return nil // Run campaigns again
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// A consumer can read the term of a message. It skips the messages of the fence.
func ExampleToken() {
	read := func(m jetstream.Msg) {
		if fenced.IsFence(m.Headers()) {
			return
		}
		if token, ok := fenced.Token(m.Headers()); ok {
			log.Printf("term %d: %s", token, m.Data())
		}
	}
	_ = read
}
