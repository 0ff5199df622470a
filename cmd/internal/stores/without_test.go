//go:build no_azure && no_dynamodb && no_etcd && no_kubernetes && no_redis

package stores_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// TestLeftOut: a build without a store says how to get it.
func TestLeftOut(t *testing.T) {
	for raw, tag := range map[string]string{
		"azblob://myaccount/elections": "no_azure",
		"dynamodb://table":             "no_dynamodb",
		"etcd://s3cret@h/x":            "no_etcd", "etcds://s3cret@h/x": "no_etcd", "k8s:production/": "no_kubernetes",
		"redis://s3cret@h": "no_redis", "rediss://s3cret@h": "no_redis", "valkey://s3cret@h": "no_redis", "valkeys://s3cret@h": "no_redis",
	} {
		_, err := stores.Parse("--store", raw)
		var f *fault.Error
		if !errors.As(err, &f) || !strings.Contains(f.Error(), "this build") || !strings.HasSuffix(f.Hint, "-tags "+tag) || strings.Contains(f.Error(), "s3cret") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := stores.Parse("--store", "nats://h/E"); err != nil {
		t.Error(err)
	}
}
