package sqlstore

import (
	"fmt"
	"slices"
	"strings"
)

// Dialect holds the differences between databases: statements, and the meaning of error codes. Use
// [Postgres], [MySQL] or [SQLite].
type Dialect struct {
	name  string
	quote string // around identifiers
	// The rest are statements and expressions, with the placeholders of render.

	era    string // names the history of the database; {file} is the history of its file
	recurs bool   // an era may come back without the writes of the eras between
	// fit is true if what the session reads and writes is committed; empty if that is always so.
	// unfit says what to do about a session that is not fit.
	fit, unfit string

	clock  string // is the server's clock in microseconds
	create string // makes the table
	// read selects, of a key, value, version, floor and era, the server's era and its clock, and
	// whether the server hides open transactions.
	read   string
	insert string // of key, value, version, expected era; writes no row if there is one, or fails
	// untouched is true while nothing was ever written to the table, even if all rows were removed
	// since. It may also be false then. Empty: the database does not know.
	untouched string
	update    string // of value, version, key, expected version, expected era
	files     bool   // the database is a file, which this process opens
	// transaction: a write begins a transaction, which fails if one is open on the connection.
	transaction bool
	// probe fails if a transaction is open on the connection, and does nothing else. It is sent
	// after each read that says that the server does not show open transactions.
	probe  string
	rights string // writes no row of a key, and fails if rights to write are missing
	notify string // does a write, its %s, and notifies of the row; empty if that is impossible
	fence  fenceDialect
	// errors gives the meanings of errors. The first that fits counts; of all others the outcome is
	// unknown.
	errors []errorMeaning
	// remedies are what an operator does about a meaning, in the terms of this database.
	remedies map[meaning]string
	// inspect finds settings that are unsafe for elections.
	inspect func(*inspection)
}

// errorMeaning is the meaning of errors with one of these codes, separated by spaces, and this part
// of their text. An error that is not the server's has the code "".
type errorMeaning struct {
	codes, text string
	meaning     meaning
}

func (d Dialect) means(code, text string) meaning {
	for _, e := range d.errors {
		if slices.Contains(strings.Split(e.codes, " "), code) && strings.Contains(text, e.text) {
			return e.meaning
		}
	}
	return unknown
}

// statements are those of a dialect for one table.
type statements struct {
	create, era, read, insert, update, rights, keys string
	// versions selects all names and versions. untouched asks whether nothing was ever written, and
	// first is an insert that depends on that.
	versions, untouched, first string
}

// render puts the name of the table and the expressions into the statements.
func (d Dialect) render(t table, era string, notify bool) statements {
	quoted := t.quoted(d.quote)
	if t.schema == "" { // sessions may have another default database
		era = strings.ReplaceAll(era, "{database}", ", '/', coalesce(database(), '')")
	}
	era = strings.ReplaceAll(era, "{database}", "")
	if d.fit != "" { // no state has the era NULL, so an unfit session can write nothing
		era = "CASE WHEN " + d.fit + " THEN " + era + " END"
	}
	literal := "'" + strings.ReplaceAll(quoted, "'", "''") + "'"
	name := "'" + strings.ReplaceAll(t.name, "'", "''") + "'"
	inner := strings.NewReplacer("{table}", quoted, "{literal}", literal)
	outer := strings.NewReplacer(
		"{table}", quoted, "{literal}", literal, "{era}", inner.Replace(era), "{clock}", d.clock,
		"{credible floor}", credible("floor", highest), "{credible clock}", credible(d.clock, latest),
	)
	text := statements{
		create: outer.Replace(d.create), era: "SELECT " + inner.Replace(era), read: outer.Replace(d.read),
		insert: outer.Replace(d.insert), update: outer.Replace(d.update), rights: outer.Replace(d.rights),
		keys: "SELECT name FROM " + quoted, versions: "SELECT name, version FROM " + quoted,
	}
	if d.untouched != "" {
		untouched := strings.NewReplacer("{name}", name, "{schema}", t.in(d.quote), "{table}", quoted).Replace(d.untouched)
		text.untouched = "SELECT " + untouched
		text.first = strings.Replace(text.insert, " ON CONFLICT", " AND "+untouched+" ON CONFLICT", 1)
	}
	if notify {
		text.insert, text.update = fmt.Sprintf(d.notify, text.insert), fmt.Sprintf(d.notify, text.update)
	}
	return text
}

// credible returns an expression for a bound on terms that is below limit, else 0. So a floor
// recovers when a clock that was centuries ahead is right again.
func credible(bound string, limit int64) string {
	return fmt.Sprintf("CASE WHEN %s < %d THEN %s ELSE 0 END", bound, limit, bound)
}

// Postgres is the dialect of PostgreSQL 12 and newer.
//
// Its era is the system identifier of the cluster, the timeline that it writes, the time of the
// server's start, and the identity of database and table. It changes when a standby is promoted,
// when the server is restarted, after a recovery to a point in time, and when the database or the
// table is recreated, for example from a dump.
func Postgres() Dialect {
	return Dialect{
		name:  "PostgreSQL",
		quote: `"`,
		// Two standbys of one primary are both promoted to the same timeline, and a former primary
		// that starts again has its former one: the time of the start tells them apart.
		era: `(SELECT system_identifier FROM pg_control_system()) || '/' || ` +
			`left(pg_walfile_name(pg_current_wal_lsn()), 8) || '/' || ` +
			`(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint || '/' || ` +
			`(SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || to_regclass({literal})::oid`,
		// A session has a transaction ID while it has written something that is not committed.
		fit: `txid_current_if_assigned() IS NULL`,
		unfit: "a transaction with uncommitted writes is open on this connection, because other code of this program " +
			"began it; nothing counts before it ends, and it may block other candidates: end it, and give elections a pool of their own",
		clock: `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
		create: `CREATE TABLE IF NOT EXISTS {table} (
  name    text COLLATE "C" PRIMARY KEY,
  value   bytea  NOT NULL,
  version text   NOT NULL,
  floor   bigint NOT NULL,
  era     text   NOT NULL
)`,
		read: `SELECT substring(t.value FROM 1 FOR 4097), t.version, t.floor, t.era, {era}, {clock}, false ` +
			`FROM (SELECT 1) AS one LEFT JOIN {table} AS t ON t.name = $1`,
		insert: `INSERT INTO {table} (name, value, version, floor, era) ` +
			`SELECT $1::text, $2::bytea, $3::text, {credible clock} + 1, $4::text WHERE {era} = $4::text ON CONFLICT (name) DO NOTHING`,
		update: `UPDATE {table} AS t SET value = $1, version = $2, floor = greatest({credible floor}, {credible clock}) + 1, era = $5::text ` +
			`WHERE t.name = $3 AND t.version = $4 AND {era} = $5::text`,
		rights: `UPDATE {table} SET value = value, version = version, floor = floor, era = era WHERE name = $1 AND false`,
		notify: `WITH written AS (%s RETURNING name, version, floor, era, value) ` +
			`SELECT pg_notify(` + postgresChannel + `, concat_ws(E'\n', name, version, floor, era, encode(value, 'base64'))) FROM written`,
		fence:   postgresFence,
		errors:  postgresErrors,
		inspect: inspectPostgres,
		remedies: map[meaning]string{
			denied: "grant this user CONNECT on the database, USAGE on the schema, and SELECT on the table, to a candidate " +
				"INSERT and UPDATE too",
			refused: "check user, password and sslmode (PGUSER, PGPASSWORD, PGPASSFILE, PGSSLMODE), and the server's " +
				"pg_hba.conf, which may require TLS",
			noTLS:      "the server offers no TLS; set ssl = on there, or sslmode=prefer here",
			noDatabase: "check the database's name (PGDATABASE), or make it with CREATE DATABASE",
			noTable:    ", or its schema is not in search_path or not open to this user (USAGE)",
			readOnly: "the server takes no writes: it is a standby, or default_transaction_read_only is on; connect to the " +
				"primary (target_session_attrs=read-write)",
		},
	}
}

// postgresChannel names the channel of the notifications, where era is the era of the row.
const postgresChannel = `'tenure/' || left(encode(sha256(convert_to(era, 'UTF8')), 'hex'), 32)`

var postgresErrors = []errorMeaning{
	{"40001 40P01", "", conflict}, // this statement was undone because of another transaction
	{"42501", "", denied},
	{"28P01 28000", "", refused},
	{"08P01", "authentication failed", refused}, // PgBouncer
	{"3D000", "", noDatabase},
	{"42P01 3F000", "", noTable},
	{"42703 42804 22P02 42P10", "", otherLayout}, // 42P10: name is not unique
	{"25006", "", readOnly},
	{"55000", "recovery", readOnly},
	{"42883 0A000", "operator does not exist", otherLayout}, // for the types of the columns
	{"42883 0A000", "cached plan", unknown},                 // the table was altered
	{"42883 0A000", "", noEra},
	{"", "server refused TLS connection", noTLS}, // pgx
}

// MySQL is the dialect of MySQL 8 and MariaDB 10.6 and newer, with the storage engine InnoDB.
//
// Its era is the identity of the server (server_uuid of MySQL; server_id, hostname and port of
// MariaDB, where servers that replicate have different values of server_id). It changes when
// another server takes over. With Galera it is the name of the cluster, because all its nodes share
// one history. If the table is named without a schema, the era also includes the session's
// database.
//
// A former primary that takes over again has its former era, and may lack writes of the primary
// that served in between. So a Store of this dialect takes the first state of an election that it
// reads after it was opened, or after the era changed, as unproven: members wait one lease, unless
// they see a leader renew. With [WithEra] a Store does not do that, so the value of that expression
// must never recur.
func MySQL() Dialect {
	return Dialect{
		name:  "MySQL",
		quote: "`",
		// A former primary that takes over again has its former era, and may lack the writes of the
		// primary that served in between.
		recurs: true,
		// Only MariaDB executes the comments that begin with /*M!, and only MySQL the others.
		era: `concat(/*M! if(@@wsrep_on, concat('galera/', replace(@@wsrep_cluster_name, ' ', '_')), ` +
			`concat_ws('/', @@server_id, @@hostname, @@port)) */ /*!80000 @@server_uuid */{database})`,
		// In other sessions statements do not commit by themselves, or read uncommitted data.
		fit: `@@autocommit AND @@completion_type = 'NO_CHAIN' /*M! AND NOT @@in_transaction */ ` +
			`AND /*M! @@tx_isolation */ /*!80000 @@transaction_isolation */ <> 'READ-UNCOMMITTED'`,
		unfit: "set autocommit = 1, completion_type = NO_CHAIN and an isolation level above READ UNCOMMITTED for these " +
			"connections, and leave no transaction open on one",
		probe: `SET TRANSACTION READ WRITE`,
		clock: `timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))`,
		create: `CREATE TABLE IF NOT EXISTS {table} (
  name    varbinary(255) NOT NULL PRIMARY KEY,
  value   blob           NOT NULL,
  version varchar(64)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  floor   bigint         NOT NULL,
  era     varbinary(255) NOT NULL
) ENGINE=InnoDB`,
		read: `SELECT substring(t.value, 1, 4097), t.version, t.floor, t.era, {era}, {clock}, /*M! 0 */ /*!80000 1 */ ` +
			`FROM (SELECT 1 AS one) AS one LEFT JOIN {table} AS t ON t.name = ?`,
		insert: `INSERT INTO {table} (name, value, version, floor, era) ` +
			`SELECT ?, ?, ?, {credible clock} + 1, {era} FROM (SELECT 1 AS one) AS one WHERE {era} = ?`,
		update: `UPDATE {table} SET value = ?, version = ?, floor = greatest({credible floor}, {credible clock}) + 1, era = {era} ` +
			`WHERE name = ? AND version = ? AND {era} = ?`,
		rights:  `UPDATE {table} SET value = value, version = version, floor = floor, era = era WHERE name = ? AND false`,
		fence:   mysqlFence,
		errors:  mysqlErrors,
		inspect: inspectMySQL,
		remedies: map[meaning]string{
			denied: "grant this user SELECT on the table, to a candidate INSERT and UPDATE too",
			refused: "check user and password, the hosts that the user may connect from, and TLS: the server " +
				"(require_secure_transport) or the user (REQUIRE SSL) may require it",
			noTLS:      "the server offers no TLS; set ssl_cert and ssl_key there, or tls=preferred here",
			noDatabase: "name the database in the connection's address, or make it with CREATE DATABASE",
			readOnly:   "the server takes no writes: it is a replica, or read_only is on; connect to the primary",
		},
	}
}

var mysqlErrors = []errorMeaning{
	{"1062", "", conflict},      // the row is there
	{"1213 1205", "", conflict}, // this statement was undone because of another transaction
	{"1568", "", inTransaction},
	{"1142 1143 1044 1227 1370", "", denied},
	{"1045 1698 1130 1820 1862 3159", "", refused},
	{"1046 1049", "", noDatabase},
	{"1146", "", noTable},
	{"1054 1136 1364 1366 1406", "", otherLayout},
	{"1290 1836 1792", "", readOnly},
	{"1193", "", noEra},
	{"", "server does not support TLS", noTLS}, // go-sql-driver/mysql
}

// SQLite is the dialect of SQLite 3.24 and newer, for processes on one machine. The file must be on
// a local disk. [NewSQLite] also pushes changes.
//
// Its era is the device and the inode of the file; there is none on Windows. A Store refuses a file
// that can be used by another path: one with several hard links and, on Linux, one that is itself a
// mount point. It does not notice that a backup was copied into the existing file. Before you do
// that, stop all members; start them a lease later.
func SQLite() Dialect {
	return Dialect{
		name:  "SQLite",
		quote: `"`,
		era:   `'{file}'`,
		clock: `CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)`,
		create: `CREATE TABLE IF NOT EXISTS {table} (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  name    TEXT    NOT NULL UNIQUE,
  value   BLOB    NOT NULL,
  version TEXT    NOT NULL,
  floor   INTEGER NOT NULL,
  era     TEXT    NOT NULL
)`,
		read: `SELECT substr(t.value, 1, 4097), t.version, t.floor, t.era, {era}, {clock}, 0 ` +
			`FROM (SELECT 1) AS one LEFT JOIN {table} AS t ON t.name = ?1`,
		// In the transaction of each INSERT, by any program, SQLite keeps the highest number that
		// the column seq ever had, in the table sqlite_sequence. DELETE leaves it there.
		untouched: `EXISTS (SELECT 1 FROM {schema}sqlite_master AS m WHERE m.type = 'table' AND m.name = {name} ` +
			`AND m.sql LIKE '%seq INTEGER PRIMARY KEY AUTOINCREMENT%' ` +
			`AND NOT EXISTS (SELECT 1 FROM {schema}sqlite_sequence AS q WHERE q.name = m.name) ` +
			`AND NOT EXISTS (SELECT 1 FROM {table}))`,
		insert: `INSERT INTO {table} (name, value, version, floor, era) ` +
			`SELECT ?1, ?2, ?3, {credible clock} + 1, {era} WHERE {era} = ?4 ON CONFLICT (name) DO NOTHING`,
		update: `UPDATE {table} SET value = ?1, version = ?2, floor = max({credible floor}, {credible clock}) + 1, era = {era} ` +
			`WHERE name = ?3 AND version = ?4 AND {era} = ?5`,
		rights:      `UPDATE {table} SET value = value WHERE name = ?1 AND false`,
		files:       true,
		transaction: true,

		unfit:   "give elections a pool of their own, or end each transaction that this program begins on a connection of this pool",
		fence:   sqliteFence,
		errors:  sqliteErrors,
		inspect: inspectSQLite,
		remedies: map[meaning]string{
			denied:     "let this user read and write the file",
			noDatabase: "check the path: this user must be able to write to the directory, and the file must be a database of SQLite",
			readOnly:   "let this user write to the file and its directory, and open it without mode=ro",
		},
	}
}

// sqliteErrors are by the primary result code, the lower eight bits.
var sqliteErrors = []errorMeaning{
	{"1", "within a transaction", inTransaction},
	{"1", "no such table", noTable},
	{"1", "no such column", otherLayout},
	{"1", "has no column", otherLayout},
	{"1", "ON CONFLICT", otherLayout}, // name is not unique
	{"3 23", "", denied},
	{"14 26", "", noDatabase},
	{"8", "", readOnly},
}
