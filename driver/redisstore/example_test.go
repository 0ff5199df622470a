package redisstore_test

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/redisstore"
	"github.com/tenure-go/tenure/driver/reread"
)

// A primary with two replicas, behind Sentinels. Each write counts only if both replicas have it.
func Example() {
	ctx := context.Background()
	store, err := redisstore.Open(ctx, rueidis.ClientOption{
		InitAddress: []string{"sentinel-1:26379", "sentinel-2:26379", "sentinel-3:26379"},
		Sentinel:    rueidis.SentinelOption{MasterSet: "mymaster"},
	}, redisstore.WithWait(2))
	if err != nil {
		log.Fatal(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	err = e.Run(ctx, func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done() // the work
		return nil
	})
	_ = store.Close()
	if err != nil {
		log.Fatal(err)
	}
}

// The password is in a file, where it may be replaced at any time. Each new connection reads it
// again. If a read fails, the last password stays in use.
func ExampleOpen_replacedPassword() {
	password := reread.New("", func(context.Context) (string, error) {
		text, err := os.ReadFile("/run/secrets/redis-password")
		return strings.TrimSpace(string(text)), err
	}, func(err error) { log.Print(err) })
	store, err := redisstore.Open(context.Background(), rueidis.ClientOption{
		InitAddress: []string{"host:6379"},
		AuthCredentialsFn: func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return rueidis.AuthCredentials{Username: "candidate", Password: password.Get(context.Background())}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = store
}
