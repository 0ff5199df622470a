package s3d

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/tenure-go/tenure/test/internal/tools"
)

// tool is a program of another project. It is installed once for each version.
type tool struct {
	name, version string
	// run is the command that starts the program. Its first part is a file below DIR, or on the
	// path.
	run []string
	// install is the command that fills an empty directory.
	install []string
	// environ is added to the environment of install. In all three, DIR stands for the directory of
	// the installation.
	environ []string
	needs   string
}

var (
	versitygw = goTool("versitygw", "github.com/versity/versitygw/cmd/versitygw", "v1.8.0")
	minio     = goTool("minio", "github.com/minio/minio", "v0.0.0-20260212201848-7aac2a2c5b7c")
	rclone    = goTool("rclone", "github.com/rclone/rclone", "v1.75.0")
	azurite   = tool{
		name: "azurite", version: "3.37.0",
		run:     []string{"node", "DIR/node_modules/azurite/dist/src/blob/main.js"},
		install: []string{"npm", "install", "--prefix", "DIR", "--no-audit", "--no-fund", "--ignore-scripts", "azurite@3.37.0"},
		needs:   "Node.js 20 or newer with npm on the path",
	}
)

func goTool(name, path, version string) tool {
	return tool{
		name: name, version: version, run: []string{"DIR/" + name},
		install: []string{"go", "install", path + "@" + version},
		environ: []string{"GOBIN=DIR", "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0"},
		needs:   "Go on the path and a module proxy",
	}
}

// Install installs the programs of kinds, so that starting them takes only seconds. Checks call it
// before tests that have a time limit.
func Install(ctx context.Context, kinds ...Kind) error {
	for _, k := range kinds {
		for _, g := range k.layout() {
			if _, err := g.tool.ready(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// ready installs the tool unless it is there, and returns the command that runs it.
func (t tool) ready(ctx context.Context) ([]string, error) {
	dir, err := tools.Dir("s3d", t.name+"-"+t.version, func(fresh string) (string, error) {
		command := inside(fresh, t.install)
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Env = fresh, append(os.Environ(), inside(fresh, t.environ)...)
		fmt.Fprintf(os.Stderr, "s3d: installing %s %s, once: %s\n", t.name, t.version, strings.Join(t.install, " "))
		return fresh, tools.Run(cmd)
	})
	if err != nil {
		return nil, fmt.Errorf("%s %s cannot be installed: it needs %s: %w", t.name, t.version, t.needs, err)
	}
	return inside(dir, t.run), nil
}

func inside(dir string, command []string) []string {
	var all []string
	for _, word := range command {
		all = append(all, strings.ReplaceAll(word, "DIR", dir))
	}
	return all
}
