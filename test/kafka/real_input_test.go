//go:build integration

package kafka

import (
	"context"
	"errors"
	"testing"

	"github.com/tenure-go/tenure/driver"
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
