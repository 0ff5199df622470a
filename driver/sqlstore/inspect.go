package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// Inspect checks the settings of the server and of the table that elections rely on. It only reads,
// on at most two connections at once. It skips settings that this user may not read.
//
// Errors are as for Read.
func (s *Store) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	if _, err := s.Read(ctx, "tenure-inspection"); err != nil {
		return nil, err
	}
	found, err := on(ctx, s, func(ctx context.Context, c session) ([]driver.Finding, error) {
		i := &inspection{ctx: ctx, s: s, conn: c.conn}
		s.dialect.inspect(i)
		return i.found, context.Cause(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("sqlstore: inspect table %s: %w", s.table, err)
	}
	return found, nil
}

// inspection collects findings.
type inspection struct {
	ctx   context.Context
	s     *Store
	conn  *sql.Conn
	found []driver.Finding
}

func (i *inspection) find(severity driver.Severity, setting, problem, remedy string) {
	i.found = append(i.found, driver.Finding{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy})
}

// triggers reports the names of triggers or rules on the table.
func (i *inspection) triggers(kind, names string, any bool) {
	if any && names != "" {
		i.find(driver.Warning, kind, "code of the database runs at each write to this table ("+names+"): a write that it changes or "+
			"undoes is not confirmed, so no candidate may ever lead", "drop it, or make sure that it changes no row of the table")
	}
}

// ask returns the only value that a query selects, as text, and false if it selects none, null, or
// is refused.
func (i *inspection) ask(query string, args ...any) (string, bool) {
	var answer sql.NullString
	err := i.conn.QueryRowContext(i.ctx, query, args...).Scan(&answer)
	return answer.String, err == nil && answer.Valid
}

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

func inspectMySQL(i *inspection) {
	i.mysqlTable()
	for _, setting := range []string{"read_only", "super_read_only"} {
		if v, ok := i.ask("SELECT @@global." + setting); ok && v != "0" && v != "OFF" {
			i.find(driver.Unsafe, setting, "the server takes no writes of this user, so nobody can be elected",
				"connect to the primary, or SET GLOBAL "+setting+" = OFF")
		}
	}
	if v, ok := i.ask("SELECT @@global.innodb_flush_log_at_trx_commit"); ok && v != "1" {
		i.find(driver.Warning, "innodb_flush_log_at_trx_commit", "a crash may lose the writes of the last second: another "+
			"candidate may claim beside a living leader, in a lower term", "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	}
	i.binaryLog()
	i.mysqlReplicas()
	if v, ok := i.ask("SELECT @@wsrep_on"); ok && v == "1" {
		i.find(driver.Advice, "wsrep_on", "Galera certifies writes at commit: of two claims on two nodes one fails with a "+
			"deadlock, which an election takes as a conflict", "let all members use one node while it lives")
	}
}

// binaryLog asks whether a write that others can read is durable.
func (i *inspection) binaryLog() {
	if on, ok := i.ask("SELECT @@global.log_bin"); ok && on == "0" {
		i.find(driver.Warning, "log_bin", "without a binary log, members can read a write just before it is durable: if the server "+
			"crashes then, another candidate may claim beside a living leader", "start the server with --log-bin and --sync-binlog=1")
		return
	}
	if v, ok := i.ask("SELECT @@global.sync_binlog"); ok && v != "1" {
		i.find(driver.Warning, "sync_binlog", "a crash of the server's machine may lose acknowledged writes: another candidate "+
			"may claim beside a living leader, in a lower term", "SET GLOBAL sync_binlog = 1")
	}
}

// mysqlTable asks for the engine of the table and for its key. Without one, two members could each
// insert a row.
func (i *inspection) mysqlTable() {
	where, args := "table_schema = database() AND table_name = ?", []any{i.s.table.name}
	if i.s.table.schema != "" {
		where, args = "table_schema = ? AND table_name = ?", []any{i.s.table.schema, i.s.table.name}
	}
	names, ok := i.ask("SELECT group_concat(trigger_name SEPARATOR ', ') FROM information_schema.triggers WHERE "+
		strings.NewReplacer("table_schema", "event_object_schema", "table_name", "event_object_table").Replace(where), args...)
	i.triggers("TRIGGER", names, ok)
	if kind, ok := i.ask("SELECT table_type FROM information_schema.tables WHERE "+where, args...); ok && kind != "BASE TABLE" {
		i.find(driver.Unsafe, "table_type", "it is no ordinary table ("+kind+"): its writes may be lost or changed, so two leaders are possible",
			"drop it, and make the table with tenure run --create")
	}
	engine, ok := i.ask("SELECT engine FROM information_schema.tables WHERE "+where, args...)
	if ok && !strings.EqualFold(engine, "InnoDB") {
		i.find(driver.Unsafe, "ENGINE", "the table's engine is "+engine+", which does not keep acknowledged writes through a crash",
			"ALTER TABLE "+i.s.table.quoted("`")+" ENGINE=InnoDB")
	}
	keys, ok := i.ask("SELECT count(*) FROM (SELECT index_name FROM information_schema.statistics WHERE "+where+
		" AND non_unique = 0 GROUP BY index_name HAVING group_concat(column_name) = 'name') AS found", args...)
	if ok && keys == "0" {
		i.find(driver.Unsafe, "PRIMARY KEY", "the column name is not unique, so an election may have two rows: two leaders are possible",
			"stop all members, remove all rows, and ALTER TABLE "+i.s.table.quoted("`")+" ADD PRIMARY KEY (name)")
	}
}

// mysqlReplicas counts the threads that send the binary log to replicas, which takes the right
// PROCESS.
func (i *inspection) mysqlReplicas() {
	n, ok := i.ask("SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
	if !ok || n == "0" {
		return
	}
	for _, setting := range []string{"rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled"} {
		if v, ok := i.ask("SELECT @@global." + setting); ok && v == "1" {
			return
		}
	}
	i.find(driver.Advice, "rpl_semi_sync_master_enabled", "replicas are asynchronous: one that takes over may lack the last writes, "+
		"and then every member waits one lease", "enable semi-synchronous replication, or accept the wait")
}

func inspectSQLite(i *inspection) {
	path, known := i.ask("SELECT file FROM pragma_database_list WHERE name = 'main'")
	if known && path == "" {
		i.find(driver.Unsafe, "file", "the database is in memory: no other process sees its elections", "open a file")
		return
	}
	if kind := networkFileSystem(filepath.Dir(path)); known && kind != "" {
		i.find(driver.Unsafe, "file", "the file is on a network file system ("+kind+"), where locks may not hold between "+
			"machines: two leaders are possible", "put the file on a local disk, or use a database server")
	}
	names, ok := i.ask("SELECT group_concat(name, ', ') FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", i.s.table.name)
	i.triggers("TRIGGER", names, ok)
	if v, ok := i.ask("PRAGMA synchronous"); ok && v == "0" {
		i.find(driver.Warning, "synchronous", "a power failure may lose acknowledged writes or damage the file",
			"PRAGMA synchronous = NORMAL on each connection")
	}
	if v, ok := i.ask("PRAGMA journal_mode"); ok && (v == "off" || v == "memory") {
		i.find(driver.Unsafe, "journal_mode", "a process that is killed within a write damages the file",
			"PRAGMA journal_mode = WAL")
	}
}
