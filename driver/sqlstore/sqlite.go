package sqlstore

import "strings"

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
		means:   sqliteMeans,
		inspect: inspectSQLite,
		remedies: map[meaning]string{
			denied:     "let this user read and write the file",
			noDatabase: "check the path: this user must be able to write to the directory, and the file must be a database of SQLite",
			readOnly:   "let this user write to the file and its directory, and open it without mode=ro",
		},
	}
}

// sqliteMeans looks at the primary result code, the lower eight bits.
func sqliteMeans(code, text string) meaning {
	switch code {
	case "1":
		switch {
		case strings.Contains(text, "within a transaction"):
			return inTransaction
		case strings.Contains(text, "no such table"):
			return noTable
		case strings.Contains(text, "no such column"), strings.Contains(text, "has no column"):
			return otherLayout
		case strings.Contains(text, "ON CONFLICT"): // name is not unique
			return otherLayout
		}
	case "3", "23":
		return denied
	case "14", "26":
		return noDatabase
	case "8":
		return readOnly
	}
	return unknown
}
