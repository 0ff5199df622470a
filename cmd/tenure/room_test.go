//go:build integration && unix

package main

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/tenure/internal/test/deadline"
)

// A bucket that is full says so, with what to do.
func TestBucketWithoutRoom(t *testing.T) {
	t.Parallel()
	url := startServer(t).ClientURL()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx := deadline.Context(t)
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "FULL", MaxBytes: 300, Storage: jetstream.FileStorage})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(ctx, "billing", "nobody's"); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(ctx, "other", strings.Repeat("x", 130)); err != nil {
		t.Fatal(err)
	}
	tenureSays(t, "reset", "--force", "--store", url+"/FULL", "--election", "billing").must(t, 1,
		`^error: --store .*/FULL: the server cannot store anything in bucket FULL: .*maximum bytes exceeded`, `^hint: look at its limits .*--max-bytes=-1$`)
}
