package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/tenure-go/tenure/driver"
)

func inspectPostgres(i *inspection) {
	if v, ok := i.ask("SHOW fsync"); ok && v == "off" {
		i.find(driver.Warning, "fsync", "a crash of the server's machine may lose acknowledged writes or damage the database: "+
			"two leaders and lower terms are possible", "set fsync = on in postgresql.conf")
	}
	if v, ok := i.ask("SHOW synchronous_commit"); ok && v == "off" {
		i.find(driver.Warning, "synchronous_commit", "a crash of the server may lose acknowledged writes: another candidate may "+
			"claim beside a living leader, in a lower term", "ALTER ROLE CURRENT_USER SET synchronous_commit = on")
	}
	if v, ok := i.ask("SHOW default_transaction_read_only"); ok && v == "on" {
		i.find(driver.Unsafe, "default_transaction_read_only", "no write is taken, so nobody can be elected",
			"ALTER ROLE CURRENT_USER SET default_transaction_read_only = off, or connect to the primary")
	}
	i.postgresTable()
	i.postgresTwins()
	i.postgresStandbys()
	i.postgresPooler()
}

// postgresTable looks at what the table does with a write, and with a crash.
func (i *inspection) postgresTable() {
	ask := func(of string) (string, bool) {
		return i.ask("SELECT "+of+" FROM pg_class AS c WHERE c.oid = to_regclass($1)", i.s.table.quoted(`"`))
	}
	if kind, ok := ask("c.relkind"); ok && kind != "r" && kind != "p" {
		i.find(driver.Unsafe, "relkind", "it is no ordinary table (relkind "+kind+"): its writes may be lost or changed, so two leaders "+
			"are possible", "drop it, and make the table with tenure run --create")
	}
	if kept, ok := ask("c.relpersistence"); ok && kept != "p" {
		i.find(driver.Warning, "UNLOGGED", "a crash of the server empties the table, so each election loses its leader",
			"ALTER TABLE "+i.s.table.quoted(`"`)+" SET LOGGED")
	}
	if on, ok := ask("c.relrowsecurity"); ok && on == "true" {
		i.find(driver.Warning, "ROW LEVEL SECURITY", "policies may hide rows from some members, which then elect by themselves or "+
			"never", "ALTER TABLE "+i.s.table.quoted(`"`)+" DISABLE ROW LEVEL SECURITY")
	}
	names, ok := ask("(SELECT string_agg(t.tgname, ', ') FROM pg_trigger AS t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal)")
	i.triggers("TRIGGER", names, ok)
	names, ok = ask("(SELECT string_agg(r.rulename, ', ') FROM pg_rewrite AS r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN')")
	i.triggers("RULE", names, ok)
}

// postgresTwins looks for tables of the same name in the search path. Sessions with another search
// path would use another one.
func (i *inspection) postgresTwins() {
	if i.s.table.schema != "" {
		return
	}
	n, ok := i.ask("SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace "+
		"WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v') AND n.nspname = ANY (current_schemas(false))", i.s.table.name)
	if ok && n != "0" && n != "1" {
		i.find(driver.Unsafe, "search_path", n+" schemas of the search path have a table "+i.s.table.name+
			": sessions with another search path elect in another one", "name the schema, as in public."+i.s.table.name)
	}
}

// postgresStandbys needs no more rights than any user has: the state of a standby is hidden from
// most, its presence is not.
func (i *inspection) postgresStandbys() {
	standbys, _ := i.ask("SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'")
	names, ok := i.ask("SHOW synchronous_standby_names")
	if standbys != "" && standbys != "0" && ok && names == "" {
		i.find(driver.Advice, "synchronous_standby_names", "standbys are asynchronous: one that is promoted may lack the last "+
			"writes, and then every member waits one lease", "set synchronous_standby_names, or accept the wait")
	}
}

// postgresPooler holds two connections. If they share one session of the server, a pooler is in
// between that gives sessions away by transaction.
func (i *inspection) postgresPooler() {
	if i.s.db.Stats().MaxOpenConnections == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(i.ctx, time.Second) // the pool may have no second one left
	defer cancel()
	second, err := i.s.db.Conn(ctx)
	if err != nil {
		return
	}
	defer func() { _ = second.Close() }()
	mine, ok := i.ask("SELECT pg_backend_pid()")
	var its sql.NullString
	if err := second.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&its); err != nil || !ok || its.String != mine {
		return
	}
	i.find(driver.Advice, "pool_mode", "a pooler with pool_mode = transaction is in between: elections work, but they wait while "+
		"the pool has no free session", "give elections a pool of their own, or connect to the server itself")
}
