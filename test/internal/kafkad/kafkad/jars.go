package kafkad

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/tenure-go/tenure/test/internal/process"
)

// kafkaVersion is the version of the brokers in pom.xml.
const kafkaVersion = "4.3.1"

//go:embed pom.xml
var pom []byte

// cache returns the directory for the brokers' program: TENURE_TOOLS, or one in the user's cache.
func cache() (string, error) {
	if dir := os.Getenv("TENURE_TOOLS"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the brokers' program: set TENURE_TOOLS to a directory: %w", err)
	}
	return filepath.Join(dir, "tenure", "kafkad"), nil
}

// installing is held during an installation, so that there is one at a time in this process.
var installing sync.Mutex

// Install fetches the brokers' program unless it is there, through Maven, and returns the directory
// of its jars. It takes a minute the first time. It returns an error that names a missing program.
func Install(ctx context.Context) (string, error) {
	installing.Lock()
	defer installing.Unlock()
	base, err := cache()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "kafka-"+kafkaVersion)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := fill(ctx, base, dir); err != nil {
		return "", fmt.Errorf("Kafka %s cannot be installed: it needs Maven on the path and a repository: %w", kafkaVersion, err)
	}
	return dir, nil
}

// fill fetches into a temporary directory and then renames it to dir, so that dir is always
// complete.
func fill(ctx context.Context, base, dir string) error {
	if err := os.MkdirAll(base, 0o700); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(base, "installing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	project, jars := filepath.Join(fresh, "pom.xml"), filepath.Join(fresh, "jars")
	if err := os.WriteFile(project, pom, 0o600); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "kafkad: fetching Kafka %s, once\n", kafkaVersion)
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", project, "dependency:copy-dependencies", "-DoutputDirectory="+jars)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, process.Tail(out))
	}
	if err := os.Rename(jars, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return err
		} // else another process was faster
	}
	return nil
}
