package election_test

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
)

// This program was written for nats-kv-leader-elect. Only the import differs. It needs a server, so
// it does not run as a test.
func Example() {
	nc, err := nats.Connect("nats://nats-1:4222")
	if err != nil {
		panic(err)
	}
	defer nc.Close()
	js, err := nc.JetStream()
	if err != nil {
		panic(err)
	}
	kv, err := js.KeyValue("ELECTIONS") // nats kv add --ttl 30s ELECTIONS
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())

	elect, err := election.NewElection("member 1", "election", kv,
		election.WithoutSplay(),
		election.OnWon(func() {
			fmt.Println("won")
			cancel()
		}),
		election.OnLost(func() { fmt.Println("lost") }))
	if err != nil {
		panic(err)
	}
	if err := elect.Start(ctx); err != nil { // blocks until stopped
		panic(err)
	}
	fmt.Println("leader:", elect.IsLeader())
}
