package sqlstore

import (
	"fmt"
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
	// means gives the meaning of an error by its code and text.
	means func(code, text string) meaning
	// remedies are what an operator does about a meaning, in the terms of this database.
	remedies map[meaning]string
	// inspect finds settings that are unsafe for elections.
	inspect func(*inspection)
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
