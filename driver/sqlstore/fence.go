package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Errors of a Fence.
var (
	// ErrFenced: a newer term has opened its Fence in this database, or begun to, so the
	// transaction was rolled back. The error also wraps driver.ErrLost.
	ErrFenced = errors.New("fenced: a newer term works in this database")
	// ErrUnknown: the commit was sent, and its outcome is not known, because there was no answer or
	// the server ended the session. Once a Fence of a newer term is open, the outcome no longer
	// changes.
	ErrUnknown = errors.New("fenced: it is not known whether the transaction was committed")
	// ErrUnfit: this database cannot have a fence.
	ErrUnfit = errors.New("fenced: this database cannot have a fence")
)

// Fence runs transactions of one term in the database of a resource. They commit only while no
// newer term has opened its Fence there. The election may be on any store: the fence has its own
// table, in the database that the transactions write to. A Fence must be made by OpenFence. Its
// methods may be called from many goroutines, and transactions of one term run side by side.
// Package pgxstore has DoFenced for transactions of pgx, and Run is for other libraries.
//
// # Other languages
//
// A program in another language sends the statements itself; tenure run gives it the token in
// TENURE_TOKEN. On PostgreSQL a new leader runs these three before its work, in this order, each in
// a transaction of its own. The row of step 1 announces the term: no transaction of a leader's work
// locks it, so an old term cannot keep it from the new one. The last statement must return the
// token, or a newer term has the fence.
//
//	INSERT INTO tenure_fence AS f (name, step, term) VALUES ('billing', 1, :token)
//	  ON CONFLICT (name, step) DO UPDATE SET term = excluded.term WHERE f.term < excluded.term;
//	INSERT INTO tenure_fence AS f (name, step, term) VALUES ('billing', 2, :token)
//	  ON CONFLICT (name, step) DO UPDATE SET term = excluded.term WHERE f.term < excluded.term;
//	SELECT term FROM tenure_fence WHERE name = 'billing' AND step = 2;
//
// Each transaction of the work begins with the next statement. If that returns no row, roll the
// transaction back. The limit in milliseconds is that of FenceLimit.
//
//	SELECT set_config('idle_in_transaction_session_timeout', :milliseconds, true),
//	    set_config('statement_timeout', :milliseconds, true)
//	  FROM tenure_fence AS f WHERE name = 'billing' AND step = 2 AND term = :token AND NOT EXISTS
//	  (SELECT FROM tenure_fence AS n WHERE n.name = 'billing' AND n.step = 1 AND n.term > :token)
//	  FOR SHARE OF f;
type Fence struct {
	db      *sql.DB
	term    driver.Term
	token   int64
	dialect Dialect
	text    fenceDialect
	set     fenceSettings
	// says gives the code of an error of the database, or nothing if it is not the database's.
	says func(error) string
}

// FenceOption changes the behavior of OpenFence.
type FenceOption func(*fenceSettings)

type fenceSettings struct {
	table, name string
	limit       time.Duration
	create      bool
}

// FenceTable names the table, as "table" or "schema.table". Default: tenure_fence.
func FenceTable(name string) FenceOption { return func(s *fenceSettings) { s.table = name } }

// FenceName names the fence in its table, in at most 255 bytes. Default: the name of the election.
func FenceName(name string) FenceOption { return func(s *fenceSettings) { s.name = name } }

// FenceLimit sets how long a transaction may be idle between two statements, and how long one
// statement may take, before the server rolls it back. A leader that is frozen within a transaction
// delays its successor for that long. At least 1 ms. Default: the rest of the lease when the
// transaction begins. On MySQL and MariaDB the first fenced transaction of a session sets the
// limits for all that follow, rounded up to whole seconds. It sets none if the session already has
// a limit of its own. SQLite has no limits.
func FenceLimit(d time.Duration) FenceOption { return func(s *fenceSettings) { s.limit = d } }

// FenceCreate makes OpenFence create the table if it does not exist, which needs the right to
// create tables.
func FenceCreate() FenceOption { return func(s *fenceSettings) { s.create = true } }

// OpenFence raises the fence to a term, in transactions of its own. When its error is nil, all
// transactions of earlier terms have ended, and none can commit any more. A new leader first opens
// the fence, then reads, then works: an earlier read may miss the last commits of the leader
// before.
//
// It waits for transactions of earlier terms, as long as ctx and the term last. A transaction ends
// when its work ends. If its process is frozen, the server ends it when its last statement has run,
// or the session has been idle, for FenceLimit. SQLite has no such limit.
//
// It returns an error that wraps ErrFenced if a newer term has the fence; driver.ErrLost if the
// term is over; ErrUnfit on Galera, if autocommit is off or a transaction was left open on the
// connection, if a file of SQLite can be used by another path, or if another file is attached;
// ErrNoTable, with the statement that makes the table; driver.ErrDenied if rights are missing
// (SELECT, INSERT and UPDATE on the table); and any other error if an argument is not valid or the
// database did not answer.
func OpenFence(ctx context.Context, term driver.Term, db *sql.DB, dialect Dialect, opts ...FenceOption) (*Fence, error) {
	set := fenceSettings{table: "tenure_fence", name: term.Election()}
	for _, opt := range opts {
		opt(&set)
	}
	table, err := parseTable(set.table)
	switch {
	case db == nil:
		return nil, errors.New("fenced: the database is nil")
	case dialect.name == "":
		return nil, errors.New("fenced: the dialect is none; use Postgres, MySQL or SQLite")
	case err != nil:
		return nil, fmt.Errorf("fenced: %w", err)
	case set.limit < 0 || set.limit > 0 && set.limit < time.Millisecond:
		return nil, fmt.Errorf("fenced: the limit is %v, less than 1ms", set.limit)
	case set.name == "" || len(set.name) > maxKey:
		return nil, fmt.Errorf("fenced: the name %.40q has %d bytes, which is not 1 to %d", set.name, len(set.name), maxKey)
	}
	f := &Fence{
		db: db, term: term, token: int64(term.Token()), set: set,
		dialect: dialect, text: dialect.fence.on(table.quoted(dialect.quote)), says: code,
	}
	if err := term.Do(ctx, 0, f.open); err != nil {
		return nil, fmt.Errorf("fenced: open %q in table %s: %w", set.name, table, f.explain(err))
	}
	return f, nil
}

// explain adds the remedy to an error of the database.
func (f *Fence) explain(err error) error {
	switch m := f.dialect.means(f.says(err), err.Error()); m {
	case noTable:
		return fmt.Errorf("%w in this database; make it with FenceCreate or this statement:\n%s;\n%w", ErrNoTable, f.text.create, err)
	case denied, refused:
		return fmt.Errorf("%w: %s: %w", driver.ErrDenied, f.dialect.remedies[m], err)
	case inTransaction:
		return fmt.Errorf("%w: a transaction is open on this connection; %s: %w", ErrUnfit, f.dialect.unfit, err)
	}
	return err
}

// The rows of a fence.
const (
	announced = 1
	raised    = 2
)

// open raises the fence and looks at it on one connection. If a transaction was left open there, no
// other session would see the fence raised.
func (f *Fence) open(ctx context.Context) error {
	conn, err := f.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	c := session{conn: conn}
	if f.dialect.files {
		if _, err := new(files).identify(ctx, conn); err != nil {
			return fmt.Errorf("%w: %w", ErrUnfit, err)
		}
	}
	if err := f.fits(ctx, c.queryRow); err != nil {
		return err
	}
	if f.set.create {
		if _, err := c.exec(ctx, f.text.create); err != nil {
			return err
		}
	}
	for _, step := range []int{announced, raised} {
		if err := f.raise(ctx, c, step); err != nil {
			return err
		}
	}
	if err := f.settled(ctx, c); err != nil {
		return err
	}
	return f.look(ctx, c.queryRow)
}

// fits returns an error that wraps ErrUnfit if a session cannot have a fence.
func (f *Fence) fits(ctx context.Context, query query) error {
	var why sql.NullString
	if err := query(ctx, f.text.unfit).Scan(&why); err != nil {
		return err
	}
	if why.Valid {
		return fmt.Errorf("%w: %s", ErrUnfit, why.String)
	}
	return nil
}

// settled returns an error if the last write of the session is not committed.
func (f *Fence) settled(ctx context.Context, c session) error {
	if f.dialect.probe != "" {
		if _, err := c.exec(ctx, f.dialect.probe); err != nil {
			return err
		}
	}
	return f.fits(ctx, c.queryRow)
}

// raise sets the term of a row. It waits for locks as long as the context lasts, whatever limits
// the database has for that.
func (f *Fence) raise(ctx context.Context, c session, step int) error {
	for {
		err := c.commit(ctx, f.dialect.transaction, func(c session) error {
			_, err := c.exec(ctx, f.text.raise, f.set.name, step, f.token)
			return err
		})
		if err == nil || ctx.Err() != nil || !slices.Contains(f.text.again, f.says(err)) {
			return err
		}
		select {
		case <-time.After(raisePause):
		case <-ctx.Done():
		}
	}
}

// raisePause keeps a database that refuses at once from being asked all the time.
const raisePause = 10 * time.Millisecond

// look returns an error that wraps ErrFenced if a newer term has the fence, and another one if it
// is not this term's for another reason.
func (f *Fence) look(ctx context.Context, query query) error {
	var now int64
	err := query(ctx, f.text.look, f.set.name).Scan(&now)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return errGone
	case err != nil:
		return err
	case now > f.token:
		return f.fenced()
	case now < f.token:
		return errGone
	}
	return nil
}

var errGone = errors.New("fenced: the fence was removed or set back since it was opened: open another one")

func (f *Fence) fenced() error {
	return fmt.Errorf("%w: %w: %w", ErrFenced, driver.ErrLost, driver.ErrDeposed)
}

// Do runs work in a transaction and commits it. The context of work ends with ctx or with the term.
// Nil options are the database's defaults; any isolation level is safe. Do adds one statement to
// those of the work; on MySQL and MariaDB a second one may set the limits of the session.
//
// After any error but ErrUnknown the transaction is not committed and never will be. The error
// wraps ErrFenced if a newer term has opened its Fence, and driver.ErrLost if the term is over.
// Otherwise it is the error of work or of the database, or says that the fence was removed or put
// back. After a serialization failure or a deadlock the caller may call Do again. Work must not end
// the transaction by SQL text, since the fence's lock would end with it. COMMIT and ROLLBACK do
// that, and on MySQL and MariaDB each statement that commits by itself, such as CREATE TABLE.
func (f *Fence) Do(ctx context.Context, opts *sql.TxOptions, work func(ctx context.Context, tx *sql.Tx) error) error {
	return f.Run(ctx, func(ctx context.Context) (Transaction, func() error, error) {
		tx, err := f.db.BeginTx(ctx, opts)
		if err != nil {
			return Transaction{}, nil, err
		}
		return Transaction{
			Query: func(ctx context.Context, query string, args ...any) Row {
				return tx.QueryRowContext(ctx, query, args...)
			},
			Commit:   func(context.Context) error { return committed(tx.Commit()) },
			Rollback: func(context.Context) error { return tx.Rollback() },
		}, func() error { return work(ctx, tx) }, nil
	})
}

// committed marks the error of a commit that database/sql did not send, because the context had
// ended and the transaction was rolled back.
func committed(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", sql.ErrTxDone, err)
	}
	return err
}

// query sends a query of at most one row.
type query = func(ctx context.Context, query string, args ...any) Row

// Row is the answer to a query of at most one row: *sql.Row or pgx.Row.
type Row interface{ Scan(dest ...any) error }

// Transaction is the part of a client library's transaction that a Fence needs.
type Transaction struct {
	// Query sends a query of at most one row, with the placeholders of the dialect.
	Query            func(ctx context.Context, query string, args ...any) Row
	Commit, Rollback func(ctx context.Context) error
}

// Run is Do for a client library other than database/sql. The function begin starts a transaction,
// and returns that transaction and a function that does the work in it. If the transaction was
// rolled back, Commit must return an error that wraps sql.ErrTxDone, or one with the database's
// code.
func (f *Fence) Run(ctx context.Context, begin func(context.Context) (Transaction, func() error, error)) error {
	err := f.term.Do(ctx, 0, func(ctx context.Context) error { return f.run(ctx, begin) })
	switch {
	case errors.Is(err, errRefused):
		if found := f.lookAgain(ctx); errors.Is(found, errGone) {
			return found
		}
		return f.fenced() // a newer term is announced, if not more
	case errors.Is(err, ErrUnknown):
		// It may be committed, whatever the fence says by now.
	case err != nil && f.says(err) != "":
		// The lock that a newer term took is one serialization failure among others.
		if found := f.lookAgain(ctx); errors.Is(found, ErrFenced) {
			return fmt.Errorf("%w: %w", found, err)
		}
	}
	return err
}

// errRefused reports that the check found no row.
var errRefused = errors.New("fenced: the check found no row")

// lookAgain is a look after a transaction has failed, perhaps because its context ended.
func (f *Fence) lookAgain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	return f.look(ctx, func(ctx context.Context, query string, args ...any) Row {
		return f.db.QueryRowContext(ctx, query, args...)
	})
}

// lookWithin bounds a look at the fence after a failure.
const lookWithin = 5 * time.Second

func (f *Fence) run(ctx context.Context, begin func(context.Context) (Transaction, func() error, error)) error {
	tx, work, err := begin(ctx)
	if err != nil {
		return err
	}
	committing := false
	defer func() {
		if !committing { // after an error, and after a panic
			_ = tx.Rollback(context.WithoutCancel(ctx))
		}
	}()
	if err := f.check(ctx, tx); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	if f.text.attaches { // the work may have attached a file
		if err := f.fits(ctx, tx.Query); err != nil {
			return err
		}
	}
	if err := f.term.Err(); err != nil {
		return err
	}
	committing = true
	err = tx.Commit(ctx)
	if err == nil || f.undone(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// undone reports whether an error of a commit means that the transaction was rolled back.
func (f *Fence) undone(err error) bool {
	code := f.says(err)
	return errors.Is(err, sql.ErrTxDone) || code != "" && f.text.undone(code)
}

// check takes the shared lock of the fence, which keeps a newer term waiting until the transaction
// ends.
func (f *Fence) check(ctx context.Context, tx Transaction) error {
	limit := f.set.limit
	if limit == 0 {
		limit = max(f.term.Remaining(), time.Millisecond)
	}
	var unlimited bool
	err := tx.Query(ctx, f.text.check, f.text.arguments(f.set.name, f.token, limit)...).Scan(&unlimited)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return errRefused
	case err != nil || !unlimited || f.text.limit == nil:
		return err
	}
	err = tx.Query(ctx, f.text.limit(limit.Milliseconds())).Scan()
	if errors.Is(err, sql.ErrNoRows) { // a SET has none
		return nil
	}
	return err
}

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
	// attaches: a transaction can write to several files. The fence guards only one of them.
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
