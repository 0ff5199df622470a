package kafkalog_test

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/driver/reread"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
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

// The password is in a file, where it may be replaced at any time: the client asks for it for each
// connection. For a file of client properties, see clientprops.Live. For certificates, let
// kgo.Dialer make a tls.Config for each connection.
func ExampleOpen_replacedPassword() {
	password := reread.New("", func(context.Context) (string, error) {
		text, err := os.ReadFile("/run/secrets/kafka-password")
		return strings.TrimSpace(string(text)), err
	}, func(err error) { log.Print("the last password stays in use: ", err) })
	login := plain.Plain(func(ctx context.Context) (plain.Auth, error) {
		return plain.Auth{User: "billing", Pass: password.Get(ctx)}, nil
	})
	connection := []kgo.Opt{kgo.SeedBrokers("kafka-1:9092", "kafka-2:9092"), kgo.SASL(login)}
	store, err := kafkalog.Open(context.Background(), connection, "billing.elections")
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
}
