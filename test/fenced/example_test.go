package fenced_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
	_ "modernc.org/sqlite"
)

// debit writes as the leader with a token.
func debit(ctx context.Context, db *sql.DB, token uint64) error {
	result, err := db.ExecContext(ctx,
		`UPDATE accounts SET balance = balance - 30, token = $1 WHERE id = $2 AND token <= $1`, token, "alice")
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errors.New("no such account, or a later leader has written to it"))
	}
	return nil
}

// Each row has the highest token that wrote to it. A leader that was frozen between its check and
// its write comes with a lower token: its statement finds no row, and changes nothing.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // each connection to :memory: is its own database
	if _, err := db.Exec(`
		CREATE TABLE accounts (id TEXT PRIMARY KEY, balance INTEGER NOT NULL, token INTEGER NOT NULL DEFAULT 0);
		INSERT INTO accounts (id, balance) VALUES ('alice', 100)`); err != nil {
		log.Fatal(err)
	}

	election, err := tenure.New(memory.New(), "billing", tenure.Config{ID: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	var tokens []uint64
	for range 2 { // leaders
		err = election.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
			tokens = append(tokens, term.Token())
			return debit(ctx, db, term.Token())
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("a late write of the first leader:", debit(ctx, db, tokens[0]))

	var balance, token uint64
	if err := db.QueryRow(`SELECT balance, token FROM accounts WHERE id = 'alice'`).Scan(&balance, &token); err != nil {
		log.Fatal(err)
	}
	fmt.Println("balance", balance, "by the second leader:", token == tokens[1])
	// Output:
	// a late write of the first leader: no such account, or a later leader has written to it
	// balance 40 by the second leader: true
}
