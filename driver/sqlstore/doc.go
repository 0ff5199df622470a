// Package sqlstore holds elections in a table of PostgreSQL, MySQL, MariaDB or SQLite. Use it where
// a service has such a database anyway. It works over database/sql with the driver that you choose:
//
//	db, err := sql.Open("pgx", "postgres://user@host/db")
//	store, err := sqlstore.New(db, sqlstore.Postgres())
//
// # What it relies on
//
// A cell is one row, and a call is one statement that commits by itself, on one connection. A
// compare-and-swap is an UPDATE that names the key and the expected version. The writer makes a
// random version of 128 bits for each write, so versions never recur, not even where a standby lost
// writes or a dump was restored. A write whose outcome is unknown is never repeated.
//
// The floor of the terms is kept in the row. Each write sets it to the larger of its successor and
// the server's clock in microseconds, so terms grow also after the row was removed or writes were
// lost. If a server's clock goes back, the row's floor still rises; only a row that is removed, or
// restored from before, within the time by which the clock went back can make terms fall.
//
// # Histories
//
// Each write stores the era, which names the database's history, in the row. If a row is of another
// era than the server, such as after a standby was promoted, every member waits for a lease before
// it claims, members that have just started too. A write from a version that was read in another
// era is refused. So writes that the new primary lacks make no second leader. An old primary that
// still accepts writes beside the new one is outside of what any lease can cover: whatever promotes
// must stop it first.
//
// A value that was changed by hand, without this package, is waited out in the same way.
//
// # Rights
//
// A candidate needs SELECT, INSERT and UPDATE on the table, an observer SELECT alone. In PostgreSQL
// both need USAGE on the schema.
//
// # Limits
//
// The shortest lease is 1 s, the longest key has 255 bytes. Changes are polled. docs/sql.md has the
// schema, poolers, replication, tested versions and times.
package sqlstore
