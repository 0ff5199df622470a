//go:build integration

package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/kafkad/kafkad"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

// TestRealWrongPasswordLater: the password is changed while a store is open. Existing connections
// continue; later ones are denied.
func TestRealWrongPasswordLater(t *testing.T) {
	soak(t)
	b := startReal(t)
	password := make(chan string, 1)
	password <- "observer"
	s := b.open(b.direct())
	create(t, s, "key", "x")
	b.Allow(t, kafkad.Observer, kmsg.ACLResourceTypeTopic, b.topic, kmsg.ACLOperationRead, kmsg.ACLOperationDescribe)
	mechanism := plain.Plain(func(context.Context) (plain.Auth, error) {
		now := <-password
		password <- now
		return plain.Auth{User: kafkad.Observer, Pass: now}, nil
	})
	observer := b.open([]kgo.Opt{kgo.SeedBrokers(b.SASLSeeds()...), kgo.SASL(mechanism)})
	read(t, observer, "key")
	<-password
	password <- "another"
	b.must(b.Stop(b.Leader(t, b.topic, 0)))
	wait.Until(b.tb, "the reader is denied", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), promptly)
		defer cancel()
		_, err := observer.Read(ctx, "key")
		return errors.Is(err, driver.ErrDenied)
	})
}

// produceForeign writes records as other programs do.
func (b *brokers) produceForeign(n int) {
	b.tb.Helper()
	client := b.client(kgo.DefaultProduceTopic(b.topic))
	var all []*kgo.Record
	for i := range n {
		all = append(all, &kgo.Record{Key: fmt.Append(nil, i), Value: []byte(`{"leaderID":"nobody","term":1000000}`),
			Headers: []kgo.RecordHeader{{Key: "tenure", Value: []byte("2 of something else")}}})
	}
	if err := client.ProduceSync(b.context(), all...).FirstErr(); err != nil {
		b.tb.Fatal(err)
	}
}

// TestRealForeignRecords: a topic with only foreign records is refused. Among the records of
// elections they are reported. The leader leads on, and nothing is lost, neither foreign records
// nor ours.
func TestRealForeignRecords(t *testing.T) {
	soak(t)
	t.Parallel()
	b := startReal(t)
	_ = b.open(b.direct()).Close()
	b.produceForeign(100)
	again, err := kafkalog.Open(b.context(), b.direct(), b.topic)
	if err == nil {
		_ = again.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "100 records") || !strings.Contains(err.Error(), "for something else") {
		t.Errorf("a topic with foreign records: %v", err)
	}

	b.topic = fresh("elections")
	s := b.open(b.direct())
	e, err := tenure.New(s, "billing", tenure.Config{ID: "a", Lease: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	term, err := e.Campaign(b.context())
	if err != nil {
		t.Fatal(err)
	}
	before := read(t, s, "billing").Version
	b.produceForeign(5000)
	wait.Until(b.tb, "a renewal", func() bool { return read(t, s, "billing").Version != before })
	if err := term.Err(); err != nil {
		t.Errorf("the leader is disturbed: %v", err)
	}
	for name, s := range map[string]*kafkalog.Store{"old": s, "new": b.open(b.direct())} {
		found, err := s.Inspect(b.context(), 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(fmt.Sprint(found), "are of no election") {
			t.Errorf("the %s reader finds %v", name, found)
		}
		if e := read(t, s, "billing"); !strings.Contains(string(e.Value), `"leaderID":"a"`) {
			t.Errorf("the %s reader sees %s", name, e.Value)
		}
	}
	_ = term.Resign(b.context())
}
