package neli_test

import (
	"fmt"
	"log"
	"time"

	goneli "github.com/tenure-go/tenure/compat/neli"
)

// This program was written for goNELI. Only the import differs.
func Example() {
	neli, err := goneli.New(goneli.Config{
		KafkaConfig:   goneli.KafkaConfigMap{"bootstrap.servers": "kafka-1:9092,kafka-2:9092"},
		LeaderGroupID: "billing.group",
		LeaderTopic:   "billing.topic",
	}, func(e goneli.Event) {
		switch e.(type) {
		case goneli.LeaderAcquired: // prepare the leader's work
		// finish the work: no other process is elected before this returns
		case goneli.LeaderRevoked:
		case goneli.LeaderFenced: // stop at once
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	pulser, err := neli.Background(func() {
		log.Printf("a little of a leader's work, with token %d", neli.Token())
		time.Sleep(100 * time.Millisecond)
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(pulser.Await())
}

func ExampleNewMock() {
	mock, err := goneli.NewMock(goneli.MockConfig{}, func(e goneli.Event) { fmt.Println(e) })
	if err != nil {
		log.Fatal(err)
	}
	mock.AcquireLeader()
	leads, err := mock.Pulse(time.Second)
	fmt.Println(leads, err, mock.Token())
	mock.FenceLeader()
	_, _ = mock.Pulse(0)
	fmt.Println(mock.IsLeader(), mock.Close())
	// Output:
	// LeaderAcquired[]
	// true <nil> 1
	// LeaderFenced[]
	// false <nil>
}
