package election_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
)

// This program was written for nats-kv-leader-elect. Only the import differs.
func Example() {
	// The default of its documentation: nats kv add --ttl 30s ELECTIONS
	kv, closeAll := bucket("ELECTIONS", 1500*time.Millisecond)
	defer closeAll()
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
	// Output:
	// won
	// lost
	// leader: false
}

// bucket creates a bucket on its own server.
func bucket(name string, ttl time.Duration) (nats.KeyValue, func()) {
	dir, err := os.MkdirTemp("", "elections")
	if err != nil {
		panic(err)
	}
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		panic(err)
	}
	s.Start()
	s.ReadyForConnections(10 * time.Second)
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		panic(err)
	}
	js, err := nc.JetStream()
	if err != nil {
		panic(err)
	}
	kv, err := js.CreateKeyValue(&nats.KeyValueConfig{Bucket: name, TTL: ttl, Storage: nats.MemoryStorage})
	if err != nil {
		panic(err)
	}
	return kv, func() {
		nc.Close()
		s.Shutdown()
		s.WaitForShutdown()
		_ = os.RemoveAll(dir)
	}
}
