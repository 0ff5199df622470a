// Command neli shows an election by package neli. All processes that are started with the same
// group and topic elect a leader, which logs twice a second that it leads. SIGINT and SIGTERM end
// it.
//
//	go run ./cmd/neli -kafka localhost:9092 -group goneli.group -topic goneli.topic
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenure-go/tenure/compat/neli"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

const pace = 500 * time.Millisecond

// options are the flags of goNELI's command.
func options(args []string) (neli.Config, error) {
	flags := flag.NewFlagSet("neli", flag.ContinueOnError)
	group := flags.String("group", "goneli.group", "consumer `group` of the candidates")
	topic := flags.String("topic", "goneli.topic", "`topic` whose partition 0 is given to one of them; the leases are in topic.log")
	brokers := flags.String("kafka", "localhost:9092", "bootstrap `servers`")
	if err := flags.Parse(args); err != nil {
		return neli.Config{}, err
	}
	log.Printf("group: %s, topic: %s, kafka: %s", *group, *topic, *brokers)
	return neli.Config{
		KafkaConfig:     neli.KafkaConfigMap{"bootstrap.servers": *brokers, "max.poll.interval.ms": 60000},
		LeaderGroupID:   *group,
		LeaderTopic:     *topic,
		MinPollInterval: neli.Duration(pace),
	}, nil
}

// run takes part until a signal comes, which is not an error, or until this process can never lead.
func run(args []string) error {
	cfg, err := options(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	n, err := neli.New(cfg)
	if err != nil {
		return err
	}
	p, err := n.Background(func() {
		log.Printf("leading, with token %d", n.Token())
		time.Sleep(pace)
	})
	if err != nil {
		return err
	}
	closed := make(chan error, 1)
	defer context.AfterFunc(ctx, func() { closed <- n.Close() })()
	if err := p.Await(); err != nil {
		return errors.Join(err, n.Close())
	}
	return <-closed
}
