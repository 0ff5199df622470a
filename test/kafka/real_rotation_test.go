//go:build integration

package kafka

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/test/internal/rotation"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestRealRotation: the password in a file of client properties is replaced.
func TestRealRotation(t *testing.T) {
	const user = "rotated"
	b := startReal(t)
	store := b.open(b.direct())
	b.Allow(t, user, kmsg.ACLResourceTypeTopic, b.topic, kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationDescribe)
	file, hand := rotation.File(t, "client.properties", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"+
		"sasl.username="+user+"\nsasl.password=SECRET\n")
	(&rotation.Play{
		Args:    []string{"--store", "kafka://" + strings.Join(b.SASLSeeds(), ",") + "/" + b.topic, "--kafka-properties", file},
		Store:   store,
		Accept:  func(secret string) { b.Password(t, user, secret) },
		Hand:    hand,
		Refusal: "SASL_AUTHENTICATION_FAILED",
	}).Run(t)
}
