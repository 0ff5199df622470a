package kafkad

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// scramSHA256 is Kafka's number of that mechanism, and leastRounds its lowest number of iterations.
const (
	scramSHA256 = 1
	leastRounds = 4096
)

// Password sets the password by which a user logs in with SCRAM-SHA-256 at SASLSeeds. The brokers
// let these users log in again every few seconds, and close the connections of those that cannot.
func (c *Cluster) Password(t testing.TB, user, password string) {
	t.Helper()
	salt := []byte("a salt for tests")
	salted, err := pbkdf2.Key(sha256.New, password, salt, leastRounds, sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	one := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	one.Name, one.Mechanism, one.Iterations, one.Salt, one.SaltedPassword = user, scramSHA256, leastRounds, salt, salted
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	req.Upsertions = append(req.Upsertions, one)
	c.do(t, "set the password of "+user, func(ctx context.Context, client *kgo.Client) error {
		got, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		for _, r := range got.Results {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				return err
			}
		}
		return nil
	})
}
