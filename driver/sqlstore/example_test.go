package sqlstore_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

// The program imports the driver that it opens, here _ "github.com/jackc/pgx/v5/stdlib". The
// example needs a server, so it does not run as a test.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://candidate@host/app")
	if err != nil {
		panic(err)
	}
	store, err := sqlstore.New(db, sqlstore.Postgres(), sqlstore.WithTable("elections.tenure"))
	if err != nil {
		panic(err)
	}
	if err := store.Create(ctx); err != nil { // or let a migration create the table
		panic(err)
	}
	e, err := tenure.New(store, "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		panic(err)
	}
	err = e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
		log.Print("leading, token ", term.Token())
		<-ctx.Done() // work here
		return nil
	})
	log.Print("done: ", err)
}

// The leader of an election on any store writes to a database. Once a newer leader has opened its
// fence there, no further transaction of the older leader is committed.
func ExampleOpenFence() {
	var db *sql.DB // of the resource
	var election *tenure.Election

	lead := func(ctx context.Context, term *tenure.Term) error {
		// Before anything is read.
		fence, err := sqlstore.OpenFence(ctx, term, db, sqlstore.Postgres())
		if err != nil {
			return err
		}
		return fence.Do(ctx, nil, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 1 WHERE id = 7")
			return err
		})
	}
	_ = func() error { return election.Run(context.Background(), lead) }
}
