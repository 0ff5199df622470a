package sqlstore

// Option changes the behavior of New.
type Option func(*settings)

type settings struct {
	table string
	era   string
	code  func(error) string
	// notify: each write notifies.
	notify bool
}

// WithTable names the table, as "table" or "schema.table". The names are quoted in all statements,
// so upper case and special characters are kept; a dot always separates. Default: tenure, where the
// database finds it.
func WithTable(name string) Option {
	return func(set *settings) { set.table = name }
}

// WithCode tells the store how to get the database's code out of an error of a driver that it does
// not know: the SQLSTATE for PostgreSQL, the error number for MySQL and MariaDB, the result code
// for SQLite, and an empty string for any other error. Without it a store knows the errors of pgx,
// of lib/pq, of go-sql-driver/mysql, and of the SQLite drivers modernc.org/sqlite and
// mattn/go-sqlite3. An unknown error is an unknown outcome: that is safe, but slower, and a missing
// right is not named.
func WithCode(code func(err error) string) Option {
	return func(set *settings) { set.code = code }
}

// WithEra replaces the SQL expression that names the history of the database. It must be text
// without spaces, at most 200 bytes, which is the same for all writes of one history, and another
// after a standby was promoted that may lack the last writes. Every role must be able to evaluate
// it. Use it where the dialect's expression does not work, such as a database that only resembles
// PostgreSQL, or costs too much, such as in a cluster in which each server is another history. An
// empty string in quotes means that no history is told apart.
func WithEra(expression string) Option {
	return func(set *settings) { set.era = expression }
}
