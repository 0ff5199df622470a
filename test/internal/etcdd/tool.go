package etcdd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tenure-go/tenure/test/internal/tools"
)

// release is the release of etcd that the tests run.
const release = "v3.7.3"

// The packages of the programs. Their modules cannot be installed by go install, since they have
// replace directives.
const (
	serverModule  = "go.etcd.io/etcd/server/v3"
	utilityModule = "go.etcd.io/etcd/etcdutl/v3"
)

// Install builds the server and etcdutl, and returns their directory, so that starting them takes
// only seconds. Checks call it before tests that have a time limit.
func Install(ctx context.Context) (string, error) {
	dir, err := tools.Dir("etcdd", "etcd-"+release, func(fresh string) (string, error) {
		fmt.Fprintf(os.Stderr, "etcdd: building etcd %s, once\n", release)
		for _, args := range [][]string{
			{"mod", "init", "etcd"},
			{"get", serverModule + "@" + release, utilityModule + "@" + release},
			{"build", "-o", "etcd", serverModule},
			{"build", "-o", "etcdutl", utilityModule},
		} {
			cmd := exec.CommandContext(ctx, "go", args...)
			cmd.Dir, cmd.Env = fresh, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
			if err := tools.Run(cmd); err != nil {
				return "", err
			}
		}
		return fresh, nil
	})
	if err != nil {
		return "", fmt.Errorf("etcd %s cannot be built: it needs Go on the path and a module proxy: %w", release, err)
	}
	return dir, nil
}

// program returns the path of a program of Install.
func program(ctx context.Context, name string) (string, error) {
	dir, err := Install(ctx)
	return filepath.Join(dir, name), err
}

// debian returns the path of the server of Debian's package etcd-server, the oldest release that is
// tested.
func debian(context.Context) (string, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", fmt.Errorf("install etcd of Debian: apt-get install etcd-server: %w", err)
	}
	return path, nil
}
