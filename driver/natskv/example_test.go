package natskv_test

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/reread"
)

// The bucket has three copies, and the connection leaves a server that does not answer. The example
// needs servers, so it does not run as a test.
func Example() {
	ctx := context.Background()
	nc, err := nats.Connect("nats://nats-1:4222,nats://nats-2:4222", nats.MaxReconnects(-1))
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		panic(err)
	}
	store, err := natskv.Open(ctx, js, "ELECTIONS",
		natskv.Create(natskv.Replicas(3)), natskv.OwnConnection())
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
// connection, and so does the store's own connection. The options nats.UserCredentials,
// nats.ClientCert and nats.RootCAs read their files again by themselves.
func ExampleOwnConnection_replacedPassword() {
	password := reread.New("", func(context.Context) (string, error) {
		text, err := os.ReadFile("/run/secrets/nats-password")
		return strings.TrimSpace(string(text)), err
	}, func(err error) { log.Print("the last password stays in use: ", err) })
	login := func() (user, secret string) { return "billing", password.Get(context.Background()) }
	nc, err := nats.Connect("nats://nats-1:4222", nats.UserInfoHandler(login), nats.IgnoreAuthErrorAbort())
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		panic(err)
	}
	store, err := natskv.Open(context.Background(), js, "ELECTIONS", natskv.OwnConnection())
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
}
