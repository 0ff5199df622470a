// Command election is nats-kv-leader-elect's demonstration, on package election. It starts some
// workers. The workers of all such processes elect one leader, in the bucket DEMO_ELECTION. SIGINT
// and SIGTERM end it.
//
//	nats kv add --ttl 31s DEMO_ELECTION
//	CONTEXT=local election
//	nats kv del DEMO_ELECTION demo        forces a failover
//
// Its settings are environment variables:
//
//	NOSPLAY     1: no random wait, of up to 5 s, before the first campaign
//	KEY         the key to campaign for (demo)
//	CONTEXT     the context of the nats command to connect with (the selected one)
//	WORKERS     how many workers to start (10)
//	MIGRATING   1: workers of nats-kv-leader-elect's own demonstration take part
package main

import (
	"log"
	"os"
)

func main() {
	if err := run(os.Getenv); err != nil {
		log.Fatal(err)
	}
}
