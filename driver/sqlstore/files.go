package sqlstore

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"reflect"
	"sync"
)

// files knows which file of SQLite each connection has open. SQLite keeps its write-ahead log
// beside the path by which a file was opened, and its locks belong to the file. So two candidates
// that use one file by two paths do not see each other's writes, and neither do two that use one
// path, if the file there was replaced in between.
type files struct {
	given string // the path that WithFile names, perhaps with symbolic links; empty: unknown

	mu   sync.Mutex
	seen map[any]openFile // by the driver's connection
	last openFile         // the file of the last connection that was new
}

// openFile is the file that a connection has open. The identity is empty if there is no such file,
// as for a database in memory, or if the system has none.
type openFile struct{ path, identity string }

// maxSeen bounds the memory for connections, which may be closed by now.
const maxSeen = 1000

// identify returns the history of the file that the connection has open. It returns an error if the
// file can be used by another path, or if the path leads to another file by now; then it closes the
// connection.
func (f *files) identify(ctx context.Context, conn *sql.Conn) (string, error) {
	var key any
	if err := conn.Raw(func(c any) error { key = c; return nil }); err != nil {
		return "", err
	}
	file, known := f.recall(key)
	replaced := false
	if !known {
		var err error
		if file, replaced, err = f.meet(ctx, conn, key); err != nil {
			return "", err
		}
	}
	now, links := identity(file.path)
	switch {
	case replaced, now != file.identity, f.leadsElsewhere(file):
		f.forget(key)
		_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		return "", fmt.Errorf("the file %s was replaced, renamed or removed while this process had it open, or a link in its path was changed; "+
			"the next call opens the file that is there now; if this error stays, close the connections of this process that still have the earlier file open, or restart the process", file.path)
	case links > 1:
		return "", fmt.Errorf("the file %s has %d hard links: candidates that open it by different names do not see each other's writes, so two could lead; "+
			"keep one link", file.path, links)
	}
	return history(file), nil
}

// history names the history of a file: its identity and its directory entry. A file that was
// renamed under its leader left the latest writes in the log beside the old name.
func history(file openFile) string {
	dir, _ := identity(filepath.Dir(file.path))
	if file.identity == "" || dir == "" {
		return ""
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(filepath.Base(file.path)))
	return fmt.Sprintf("%s/%s/%x", file.identity, dir, name.Sum64())
}

// leadsElsewhere reports whether the given path leads to another file by now, such as after a
// symbolic link in it was changed.
func (f *files) leadsElsewhere(file openFile) bool {
	if f.given == "" {
		return false
	}
	to, err := filepath.EvalSymlinks(f.given)
	its, _ := identity(to)
	return err != nil || history(openFile{to, its}) != history(file)
}

// opened returns the file of a connection that has not been seen before.
func opened(ctx context.Context, conn *sql.Conn) (openFile, error) {
	var file openFile
	if err := conn.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&file.path); err != nil {
		return openFile{}, err
	}
	mounted, err := isMountPoint(file.path)
	if err != nil {
		return openFile{}, err
	}
	if mounted {
		return openFile{}, fmt.Errorf("the file %s is itself a mount point: candidates that open it outside of the mount do not see the writes inside, so two could lead; "+
			"mount its directory instead", file.path)
	}
	file.identity, _ = identity(file.path)
	return file, nil
}

// meet returns the file of a connection that is new here. The pool may have opened it long ago, for
// other code. So it reports whether the connection may have an earlier file at this path: one of
// this process still does.
func (f *files) meet(ctx context.Context, conn *sql.Conn, key any) (file openFile, replaced bool, err error) {
	file, err = opened(ctx, conn)
	if err != nil || file.identity == "" {
		return file, false, err
	}
	if replaced, err = hasOpen(file.path, f.former(file)); replaced || err != nil {
		return file, replaced, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = file
	if reflect.TypeOf(key).Comparable() { // else the connection is new in each call
		if f.seen == nil || len(f.seen) >= maxSeen {
			f.seen = map[any]openFile{}
		}
		f.seen[key] = file
	}
	return file, false, nil
}

// former returns the identity of the file that was at the path of this one before, or nothing.
func (f *files) former(file openFile) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last.path != file.path || f.last.identity == file.identity {
		return ""
	}
	return f.last.identity
}

func (f *files) recall(key any) (openFile, bool) {
	if !reflect.TypeOf(key).Comparable() {
		return openFile{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	file, known := f.seen[key]
	return file, known
}

func (f *files) forget(key any) {
	if reflect.TypeOf(key).Comparable() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.seen, key)
	}
}
