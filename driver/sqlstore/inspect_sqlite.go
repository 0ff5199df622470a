package sqlstore

import (
	"path/filepath"

	"github.com/tenure-go/tenure/driver"
)

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
