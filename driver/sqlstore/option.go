package sqlstore

import "time"

// Option changes the behavior of New.
type Option func(*settings)

type settings struct {
	table string
	era   string
	code  func(error) string
	// notify: each write notifies.
	notify   bool
	reserved bool
	file     string
	pristine bool
	every    time.Duration
}

// WithTable names the table, as "table" or "schema.table". All statements quote the names, so upper
// case and special characters are kept; a dot always separates. Default: tenure, in the session's
// default schema or search path.
func WithTable(name string) Option {
	return func(set *settings) { set.table = name }
}

// WithReservedConnection keeps one connection of the pool for the elections, so that other code
// that uses the whole pool cannot delay a renewal. The store takes it with its first call, and
// holds one until [Store.Close]. After a minute or an error, unless the pool is full, it gives it
// back and takes one again, so that the pool's limits on the age of connections hold. Calls that
// come while it is in use take other connections of the pool.
func WithReservedConnection() Option {
	return func(set *settings) { set.reserved = true }
}

// WithFile names the file of SQLite by the path that the program was given. If a symbolic link in
// it is changed, calls return an error and close their connections, and the next ones open the file
// to which it leads by then. Without the option, the store goes on in the file that it opened
// first, and a candidate that starts later may lead in the other one. A relative path is resolved
// when New is called. Other databases ignore it.
func WithFile(path string) Option {
	return func(set *settings) { set.file = path }
}

// WithPristine lets the first election in a new table of SQLite begin at once, and not after one
// lease. The caller vouches that no living candidate knew an earlier file of this path, or an
// earlier table in it: a leader of the old one trusts its lease until it notices. The store itself
// proves the rest: the write of the first claim fails if anything was ever written to this table.
// So while candidates may be alive, do not reset sqlite_sequence, as scripts that empty a table do.
// It needs a table that [Store.Create] of this version made; in an older one the option has no
// effect. New returns an error with any other dialect.
func WithPristine() Option {
	return func(set *settings) { set.pristine = true }
}

// WithCode sets the function that returns the database's code from an error of a driver: the
// SQLSTATE for PostgreSQL, the error number for MySQL and MariaDB, the primary result code for
// SQLite, and an empty string for any other error. Without it a store knows the errors of pgx,
// lib/pq, go-sql-driver/mysql, modernc.org/sqlite and mattn/go-sqlite3. After an error without a
// known code the outcome is unknown: that is safe but slower, and the error does not name a missing
// right.
func WithCode(code func(err error) string) Option {
	return func(set *settings) { set.code = code }
}

// WithEra replaces the SQL expression that names the history of the database. Its value must be
// text without spaces, of at most 200 bytes. It must be the same for all writes of one history, and
// differ after the promotion of a standby that may lack the last writes. Every role must be able to
// evaluate it. Use it where the dialect's expression does not work, as in a database that only
// resembles PostgreSQL. Use it also if the era changes too often, since each change costs a wait of
// one lease: for example, where each server of a cluster has its own history. If the expression is
// an empty string in quotes, the store does not distinguish histories.
func WithEra(expression string) Option {
	return func(set *settings) { set.era = expression }
}
