package group_test

import (
	"context"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/kafkalog/group"
	"github.com/tenure-go/tenure/nomination"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The owner of a consumer group's partition has precedence. The log decides which candidate leads.
func Example() {
	ctx := context.Background()
	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092")}
	store, err := kafkalog.Open(ctx, connection, "billing.elections")
	if err != nil {
		log.Fatal(err)
	}
	g, err := group.Join(ctx, connection, group.Config{Name: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{
		Nomination: nomination.By(g),
		Metadata:   group.Metadata(g.Name()),
		OnEvent: func(ev tenure.Event) {
			if ev.Kind == tenure.EventLeader && ev.Leader.Exists() {
				if err := group.CheckLeader(g.Name(), ev.Leader.Metadata); err != nil {
					log.Print(err)
				}
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	err = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done() // lead, until asked to finish
		return nil
	})
	if err := g.Close(); err != nil { // after the work: another member is nominated at once
		log.Print(err)
	}
	if err != nil {
		log.Print(err)
	}
}
