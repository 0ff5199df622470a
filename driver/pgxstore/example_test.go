package pgxstore_test

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/reread"
)

// PostgreSQL notifies followers of changes. The pool and the listening connection may have
// different addresses, such as those of a pooler and of the server.
func Example() {
	config, err := pgx.ParseConfig("postgres://billing@host/database")
	if err != nil {
		log.Fatal(err)
	}
	store, err := pgxstore.New(stdlib.OpenDB(*config), config)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Create(context.Background()); err != nil { // creates the table if it is missing
		log.Fatal(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	err = e.Run(context.Background(), func(ctx context.Context, _ *tenure.Term) error {
		<-ctx.Done() // the work
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}

// The password is in a file, where it may be replaced at any time. Each new connection of the pool
// and of the listener reads it again. If a read fails, the last password stays in use.
func ExampleStore_BeforeConnect() {
	config, err := pgx.ParseConfig("postgres://billing@host/database")
	if err != nil {
		log.Fatal(err)
	}
	password := reread.New("", func(context.Context) (string, error) {
		text, err := os.ReadFile("/run/secrets/database-password")
		return strings.TrimSpace(string(text)), err
	}, func(err error) { log.Print(err) })
	fresh := func(ctx context.Context, c *pgx.ConnConfig) error {
		c.Password = password.Get(ctx)
		return nil
	}
	store, err := pgxstore.New(stdlib.OpenDB(*config, stdlib.OptionBeforeConnect(fresh)), config)
	if err != nil {
		log.Fatal(err)
	}
	store.BeforeConnect(fresh)
}
