// Command neli shows an election by package neli. All processes that are started with the same
// group and topic elect a leader, which logs twice a second that it leads. SIGINT and SIGTERM end
// it.
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
