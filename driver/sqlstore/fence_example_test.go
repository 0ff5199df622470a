package sqlstore_test

import (
	"context"
	"database/sql"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/sqlstore"
)

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
