package fenced_test

import (
	"context"
	"errors"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/fenced"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The leader first opens its producer. Then it reads what earlier leaders have committed. Then it
// works.
func Example() {
	ctx := context.Background()
	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")}
	store, err := kafkalog.Open(ctx, connection, "billing.elections")
	if err != nil {
		log.Fatal(err)
	}
	election, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		p, err := fenced.Open(ctx, term, append(connection, kgo.DefaultProduceTopic("payments")))
		if err != nil {
			return err
		}
		defer func() { _ = p.Close() }()

		err = p.Produce(ctx, kgo.StringRecord("debit alice 30"), kgo.StringRecord("credit bob 30"))
		switch {
		case errors.Is(err, tenure.ErrLost):
			return nil // Run campaigns again
		case errors.Is(err, fenced.ErrUnknown):
			return err // read the topic before writing it again
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
