package sql

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/driver/sqlstore"
)

// TestSQLiteMountedFileIsRefused: "docker run -v e.db:/data/e.db" mounts the single file, so the
// container writes another write-ahead log than candidates outside.
func TestSQLiteMountedFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	file, inside := filepath.Join(dir, "elections.db"), filepath.Join(dir, "in side.db")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.WriteFile(inside, nil, 0o600))
	err := syscall.Mount(file, inside, "", syscall.MS_BIND, "")
	if errors.Is(err, syscall.EPERM) {
		t.Skip("NOT TESTED: this user may not mount")
	}
	must(t, err)
	db := pool(t, inside, "")
	defer func() {
		_ = db.Close()
		must(t, syscall.Unmount(inside, 0))
	}()
	wantRefused(t, over(t, db, sqlstore.SQLite()), "is itself a mount point")
}
