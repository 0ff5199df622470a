// Package sqlstore holds elections in a table of PostgreSQL, MySQL, MariaDB or SQLite. Use it where
// a service has such a database anyway. It works over database/sql with the driver that you choose:
//
//	db, err := sql.Open("pgx", "postgres://user@host/db")
//	store, err := sqlstore.New(db, sqlstore.Postgres())
//
// # What it relies on
//
// A cell is one row. A read is one statement. A compare-and-swap is one statement that commits by
// itself, an UPDATE that names the key and the expected version, and a read of the row on the same
// connection. Only if that read shows the row as it was written, with no transaction open, does the
// write count. The first write of an election is an INSERT, after a read. The writer draws a
// random version of 128 bits for each write. So versions never recur, not even if a standby lost
// writes or a dump was restored. The store never repeats a write whose outcome is unknown.
//
// The row holds the floor of the terms. Each write sets it to one above the larger of its last
// value and the server's clock in microseconds, so terms also grow after the row was removed or
// writes were lost. If the server's clock goes back, the row's floor still rises. Terms can fall
// only if the row is also removed, or replaced by an older one, before the clock has caught up.
//
// # Histories
//
// Each write stores the era, which names the database's history, in the row. If a row is of another
// era than the server, for example after a standby was promoted, every member waits one lease
// before it claims, also one that has just started. A write from a version that was read in another
// era is a conflict. So there is no second leader even if the new primary lacks some writes. No
// lease protects against an old primary that still accepts writes beside the new one: stop the old
// one before the promotion.
//
// Members also wait one lease after a value was changed by hand, without this package.
//
// # Rights
//
// A candidate needs SELECT, INSERT and UPDATE on the table, an observer SELECT alone. In PostgreSQL
// both need USAGE on the schema.
//
// # Limits
//
// The shortest lease is 1 s, and the longest key has 255 bytes. Members poll for changes.
// [NewSQLite] pushes those of SQLite, package pgxstore those of PostgreSQL, and package peer those
// of any database. docs/sql.md has the schema, poolers, replication, tested versions
// and times.
package sqlstore
