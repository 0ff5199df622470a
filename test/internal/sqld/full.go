package sqld

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/test/internal/process"
)

// small is the size of a small disk. It holds a new cluster and a few segments of its log.
const small = 160 << 20

// StartPostgresOnSmallDisk is StartPostgres on a file system of its own in memory. It must run as
// root.
func StartPostgresOnSmallDisk(t testing.TB) *Postgres {
	t.Helper()
	p := new(Postgres)
	t.Cleanup(func() {
		_ = p.Kill()
		_ = syscall.Unmount(p.Dir, syscall.MNT_DETACH)
		p.End()
	})
	must(t, p.settle(func(dir string) error {
		if err := mount(dir, p.User); err != nil {
			return err
		}
		if err := p.initialize(); err != nil {
			return err
		}
		return p.begins([]string{"min_wal_size=32MB", "max_wal_size=32MB"})
	}))
	return p
}

// memory returns the directory of a file system in memory, if there is one with enough space for
// the servers of tests. There a new server takes half of the processor time. A server that is
// killed loses nothing there that it would keep on a disk.
func memory() string {
	const dir, enough = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil || int64(fs.Bavail)*fs.Bsize < enough {
		return ""
	}
	return dir
}

func mount(dir, user string) error {
	uid, gid, err := process.IDs(user)
	if err != nil {
		return err
	}
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755,uid=%d,gid=%d", small, uid, gid))
}

// Fill fills the disk. The returned function frees the space.
func (p *Postgres) Fill(t testing.TB) (free func()) {
	t.Helper()
	name := filepath.Join(p.Dir, "filler")
	f, err := os.Create(name)
	must(t, err)
	defer func() { _ = f.Close() }()
	if _, err := io.CopyN(f, zeros{}, small); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return func() { must(t, os.Remove(name)) }
}

type zeros struct{}

// Read returns zeros.
func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
