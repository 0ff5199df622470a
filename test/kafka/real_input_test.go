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

// refused opens the test's topic in vain. It fails unless the error contains all these texts.
func (b *brokers) refused(connection []kgo.Opt, denied bool, says []string, opts ...kafkalog.Option) {
	b.tb.Helper()
	began := time.Now()
	s, err := kafkalog.Open(b.context(), connection, b.topic, opts...)
	if err == nil {
		_ = s.Close()
		b.tb.Fatal("it is opened")
	}
	b.tb.Logf("after %v: %v", time.Since(began), err)
	if errors.Is(err, driver.ErrDenied) != denied {
		b.tb.Errorf("denied: %v, want %v", errors.Is(err, driver.ErrDenied), denied)
	}
	for _, word := range says {
		if !strings.Contains(err.Error(), word) {
			b.tb.Errorf("the error does not say %q", word)
		}
	}
}

// TestRealMistakes: mistakes of users are reported at once.
func TestRealMistakes(t *testing.T) {
	b := startReal(t)
	const nobody = "127.0.0.1:1"
	wrong := plain.Auth{User: kafkad.Candidate, Pass: "wrong"}.AsMechanism()
	for _, c := range []struct {
		name       string
		connection []kgo.Opt
		denied     bool
		says       []string
	}{
		{"no broker", []kgo.Opt{kgo.SeedBrokers(nobody)}, false, []string{nobody}},
		{"wrong password", []kgo.Opt{kgo.SeedBrokers(b.SASLSeeds()...), kgo.SASL(wrong)}, true, []string{"SASL_AUTHENTICATION_FAILED"}},
		{"no password", []kgo.Opt{kgo.SeedBrokers(b.SASLSeeds()...)}, false, []string{"SASL"}},
		{"no rights at all", b.as(kafkad.Stranger), true, []string{"TOPIC_AUTHORIZATION_FAILED"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			same := *b
			same.tb = t
			same.refused(c.connection, c.denied, c.says)
		})
	}
}

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

// TestRealRights: the list in the package comment is enough, and a missing right is named.
func TestRealRights(t *testing.T) {
	b := startReal(t)
	grant := func(user string, rights ...kmsg.ACLOperation) {
		b.Revoke(t, user)
		b.Allow(t, user, kmsg.ACLResourceTypeTopic, b.topic, rights...)
	}
	const (
		read, write    = kmsg.ACLOperationRead, kmsg.ACLOperationWrite
		describe, make = kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate
		look           = kmsg.ACLOperationDescribeConfigs
	)
	t.Cleanup(func() {
		for _, user := range []string{kafkad.Candidate, kafkad.Observer} {
			b.Revoke(t, user)
		}
	})
	grant(kafkad.Candidate, read, write, describe)
	b.refused(b.as(kafkad.Candidate), true, []string{"grant Create on it", "kafka-topics.sh --create"})
	b.refused(b.as(kafkad.Candidate), false, []string{"it does not exist", "kafka-topics.sh --create"}, kafkalog.WithoutCreate())

	grant(kafkad.Candidate, read, write, describe, make, look)
	founder := b.open(b.as(kafkad.Candidate))
	if found, err := founder.Inspect(b.context(), 5*time.Minute); err != nil || len(found) > 0 {
		t.Errorf("what Open has created: %v (%v)", found, err)
	}
	v := create(t, founder, "key", "first")

	grant(kafkad.Candidate, read, write, describe)
	candidate := b.open(b.as(kafkad.Candidate))
	v = swap(t, candidate, "key", v, "second")
	b.denied("Inspect", "DescribeConfigs", func(ctx context.Context) error {
		_, err := candidate.Inspect(ctx, 15*time.Second)
		return err
	})

	grant(kafkad.Observer, read, describe)
	observer := b.open(b.as(kafkad.Observer))
	if e, err := observer.Read(b.context(), "key"); err != nil || e.Version != v {
		t.Errorf("the observer sees %s (%v)", e.Value, err)
	}
	b.denied("write", "TOPIC_AUTHORIZATION_FAILED", func(ctx context.Context) error {
		_, err := observer.CompareAndSwap(ctx, "key", v, []byte("x"))
		return err
	})
	b.denied("check", "grant Write", func(ctx context.Context) error { return observer.CheckRights(ctx, "key") })
	if err := candidate.CheckRights(b.context(), "key"); err != nil {
		t.Errorf("the candidate may not write: %v", err)
	}
	if e, err := observer.Read(b.context(), "key"); err != nil || e.Version != v {
		t.Errorf("after asking the observer sees %s (%v)", e.Value, err)
	}
	grant(kafkad.Observer, describe)
	b.denied("read", "TOPIC_AUTHORIZATION_FAILED", func(ctx context.Context) error {
		_, err := observer.Read(ctx, "key")
		return err
	})
	b.refused(b.as(kafkad.Observer), true, []string{"TOPIC_AUTHORIZATION_FAILED"})
	grant(kafkad.Observer, read) // for a broker this includes Describe
	b.open(b.as(kafkad.Observer))
	grant(kafkad.Observer, write)
	b.refused(b.as(kafkad.Observer), true, []string{"TOPIC_AUTHORIZATION_FAILED"})
	swap(t, candidate, "key", v, "third")
}

// denied calls until the call is denied: the first answer may be from before the right was removed.
func (b *brokers) denied(what, says string, call func(context.Context) error) {
	b.tb.Helper()
	var err error
	began := time.Now()
	wait.Until(b.tb, what+" is denied", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), promptly)
		defer cancel()
		err = call(ctx)
		return errors.Is(err, driver.ErrDenied)
	})
	b.tb.Logf("%s after %v: %v", what, time.Since(began), err)
	if !strings.Contains(err.Error(), says) {
		b.tb.Errorf("%s: %v does not say %s", what, err, says)
	}
}

// TestRealUnsafeTopics: a topic that was created for another purpose is refused. The error names
// the setting.
func TestRealUnsafeTopics(t *testing.T) {
	b := startReal(t)
	b.CreateTopic(t, b.topic, map[string]string{"retention.ms": "-1", "retention.bytes": fmt.Sprint(64 << 20), "cleanup.policy": "compact"})
	b.refused(b.direct(), false, []string{"cleanup.policy", "--add-config cleanup.policy=delete"})
	b.topic = fresh("elections")
	b.CreateTopic(t, b.topic, nil)
	b.refused(b.direct(), false, []string{"retention.ms", "--add-config retention.ms=-1"})
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
	b.refused(b.direct(), false, []string{"100 records", "for something else"})

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
