package kafkalog_test

import (
	"context"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The topic must exist; kafkalog.CreateCommand returns the command that makes it. The example needs
// brokers, so it does not run as a test.
func Example() {
	ctx := context.Background()
	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")}
	store, err := kafkalog.Open(ctx, connection, "billing.elections")
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		panic(err)
	}
	err = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		log.Print("leading, token ", term.Token())
		<-ctx.Done() // work here
		return nil
	})
	log.Print("done: ", err)
}
