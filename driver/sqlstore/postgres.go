package sqlstore

import "strings"

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
		means:   postgresMeans,
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

func postgresMeans(code, text string) meaning {
	switch code {
	case "40001", "40P01": // this statement was undone because of another transaction
		return conflict
	case "42501":
		return denied
	case "28P01", "28000":
		return refused
	case "08P01":
		if strings.Contains(text, "authentication failed") { // PgBouncer
			return refused
		}
	case "3D000":
		return noDatabase
	case "42P01", "3F000":
		return noTable
	case "42703", "42804", "22P02", "42P10": // 42P10: name is not unique
		return otherLayout
	case "25006":
		return readOnly
	case "55000":
		if strings.Contains(text, "recovery") {
			return readOnly
		}
	case "42883", "0A000":
		if strings.Contains(text, "operator does not exist") { // for the types of the columns
			return otherLayout
		}
		if !strings.Contains(text, "cached plan") { // the table was altered
			return noEra
		}
	case "":
		if strings.HasSuffix(text, "server refused TLS connection") { // pgx
			return noTLS
		}
	}
	return unknown
}
