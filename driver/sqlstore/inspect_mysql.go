package sqlstore

import (
	"strings"

	"github.com/tenure-go/tenure/driver"
)

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
