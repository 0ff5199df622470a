// Package tools keeps the servers of other projects that tests run, each installed once for each
// version: below TENURE_TOOLS, or else below the user's cache.
package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/test/internal/process"
)

// installing is held during an installation, so that there is one at a time in this process: each
// uses all processors.
var installing sync.Mutex

// Dir returns the directory of a tool. If it is missing, fill installs the tool below a temporary
// directory and returns the directory that becomes it, so that it is always complete.
func Dir(owner, name string, fill func(fresh string) (made string, err error)) (dir string, err error) {
	installing.Lock()
	defer installing.Unlock()
	base := os.Getenv("TENURE_TOOLS")
	if base == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no place for the servers: set TENURE_TOOLS to a directory: %w", err)
		}
		base = filepath.Join(cache, "tenure", owner)
	}
	if dir, err = filepath.Abs(filepath.Join(base, name)); err != nil {
		return "", err
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	made, err := fill(fresh)
	if err != nil {
		return "", err
	}
	err = os.Rename(made, dir)
	if _, there := os.Stat(dir); there == nil {
		return dir, nil // perhaps because another process was faster
	}
	return "", err
}

// Run runs a command of an installation. Its error has the end of the output.
func Run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, process.Tail(out))
	}
	return nil
}
