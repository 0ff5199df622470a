package sqlstore

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// fenceDialect is what differs between databases in fences: statements, with {fence} for the table.
//
// The fence of a name is two rows, each with a term. The first announces a new term, and nothing
// ever waits for it. The second is the fence itself: working transactions hold a shared lock on it.
// Without the first, transactions of the old term that overlap could keep a new term's write of the
// second waiting without end, since PostgreSQL lets a shared lock pass a writer that waits.
type fenceDialect struct {
	create string
	// raise sets the term of a row, unless it is higher: of name, row, term.
	raise string
	// look selects the term of the second row: of name.
	look string
	// check selects one row if the term of the second row is the given one, and locks it against
	// changes until the transaction ends; none if a higher one is announced: of name, term, term.
	// The row says whether the session's limits must be set, or, of name, term, milliseconds, sets
	// them.
	check string
	// takesLimit: check takes the limit as its last argument.
	takesLimit bool
	// limit sets the limits of the session; of milliseconds.
	limit func(ms int64) string
	// unfit selects why a session cannot have a fence, or null.
	unfit string
	// attaches: a transaction can write to several files, of which the fence guards one.
	attaches bool
	// undone reports whether an error of a commit, by its code, means that the transaction
	// was rolled back. Other errors leave that open: a server that shuts down may have committed.
	undone func(code string) bool
	// again are codes of errors after which a raise, which changed nothing, is tried again.
	again []string
}

var postgresFence = fenceDialect{
	create: `CREATE TABLE IF NOT EXISTS {fence} (
  name text     COLLATE "C" NOT NULL,
  step smallint NOT NULL,
  term bigint   NOT NULL,
  PRIMARY KEY (name, step)
)`,
	raise: `INSERT INTO {fence} AS f (name, step, term) VALUES ($1, $2, $3) ` +
		`ON CONFLICT (name, step) DO UPDATE SET term = excluded.term WHERE f.term < excluded.term`,
	look: `SELECT term FROM {fence} WHERE name = $1 AND step = 2`,
	check: `SELECT set_config('idle_in_transaction_session_timeout', $3, true) || set_config('statement_timeout', $3, true) IS NULL ` +
		`FROM {fence} AS f WHERE name = $1 AND step = 2 AND term = $2 AND NOT EXISTS ` +
		`(SELECT FROM {fence} AS n WHERE n.name = $1 AND n.step = 1 AND n.term > $2) FOR SHARE OF f`,
	unfit: `SELECT CASE WHEN txid_current_if_assigned() IS NOT NULL THEN 'a transaction with uncommitted writes is open on ` +
		`this connection, because other code of this program began it: end it' END`,
	takesLimit: true,
	again:      []string{"40001", "40P01", "55P03", "57014"}, // 57014: the role's statement_timeout
	// Errors before the commit roll back, also those of deferred triggers. The exceptions end the
	// session: with synchronous replication it may be waiting for a standby after its commit.
	undone: func(code string) bool {
		return code != "40003" && !slices.ContainsFunc([]string{"08", "57P", "58", "XX"}, func(class string) bool {
			return strings.HasPrefix(code, class)
		})
	},
}

var mysqlFence = fenceDialect{
	create: `CREATE TABLE IF NOT EXISTS {fence} (
  name varbinary(255) NOT NULL,
  step smallint       NOT NULL,
  term bigint         NOT NULL,
  PRIMARY KEY (name, step)
) ENGINE=InnoDB`,
	raise: `INSERT INTO {fence} (name, step, term) VALUES (?, ?, ?) ` +
		`ON DUPLICATE KEY UPDATE term = greatest(term, VALUES(term))`,
	look: `SELECT term FROM {fence} WHERE name = ? AND step = 2`,
	check: `SELECT /*M! @@idle_transaction_timeout = 0 */ /*!80000 @@wait_timeout > 3600 */ ` +
		`FROM {fence} AS f WHERE name = ? AND step = 2 AND term = ? AND NOT EXISTS ` +
		`(SELECT 1 FROM {fence} AS n WHERE n.name = f.name AND n.step = 1 AND n.term > f.term) LOCK IN SHARE MODE`,
	limit: func(ms int64) string {
		seconds := (ms + 999) / 1000
		return fmt.Sprintf("SET SESSION /*M! idle_transaction_timeout = %d, max_statement_time = %d */ "+
			"/*!80000 wait_timeout = %d, max_execution_time = %d */", seconds, seconds, seconds, ms)
	},
	unfit: `SELECT if(@@autocommit, /*M! if(@@in_transaction, 'a transaction is open on this connection', ` +
		`if(@@wsrep_on, 'Galera locks rows on one node alone, so two terms could commit on two nodes', NULL)) */ /*!80000 NULL */, ` +
		`'autocommit is off: set autocommit = 1 for these connections')`,
	again: []string{"1205", "1213"},
	// A deadlock, a lock that was not had in time, and a refusal by group replication.
	undone: func(code string) bool { return slices.Contains([]string{"1205", "1213", "3101"}, code) },
}

var sqliteFence = fenceDialect{
	create: `CREATE TABLE IF NOT EXISTS {fence} (
  name TEXT    NOT NULL,
  step INTEGER NOT NULL,
  term INTEGER NOT NULL,
  PRIMARY KEY (name, step)
)`,
	raise: `INSERT INTO {fence} (name, step, term) VALUES (?1, ?2, ?3) ` +
		`ON CONFLICT (name, step) DO UPDATE SET term = excluded.term WHERE term < excluded.term`,
	look: `SELECT term FROM {fence} WHERE name = ?1 AND step = 2`,
	check: `SELECT 0 FROM {fence} WHERE name = ?1 AND step = 2 AND term = ?2 AND NOT EXISTS ` +
		`(SELECT 1 FROM {fence} AS n WHERE n.name = ?1 AND n.step = 1 AND n.term > ?2)`,
	unfit: `SELECT (SELECT 'the database ' || name || ' is attached, which this fence does not guard: open it by itself, with a ` +
		`fence of its own' FROM pragma_database_list WHERE name NOT IN ('main', 'temp') LIMIT 1)`,
	attaches: true,
	again:    []string{"5"},
	// Busy, locked, full, and a constraint. An error of the disk leaves it open.
	undone: func(code string) bool { return slices.Contains([]string{"5", "6", "13", "19"}, code) },
}

// on returns the statements for one table.
func (d fenceDialect) on(quoted string) fenceDialect {
	for _, text := range []*string{&d.create, &d.raise, &d.look, &d.check} {
		*text = strings.ReplaceAll(*text, "{fence}", quoted)
	}
	return d
}

// arguments are those of check.
func (d fenceDialect) arguments(name string, term int64, limit time.Duration) []any {
	if d.takesLimit {
		return []any{name, term, fmt.Sprint(limit.Milliseconds())}
	}
	return []any{name, term}
}
