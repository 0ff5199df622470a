// Command neli takes part in the election of a leader among all that are started with the same
// group and topic, and says twice a second that it leads while it does. SIGINT and SIGTERM end it.
//
//	go run ./cmd/neli -kafka localhost:9092 -group goneli.group -topic goneli.topic
package main

import (
	"log"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
