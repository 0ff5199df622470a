package s3d

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/s3fake"
	"github.com/tenure-go/tenure/test/internal/tools"
)

// program says how to start one process of a kind.
type program struct {
	tool tool
	// hidden is set if clients do not talk to the process.
	hidden  bool
	prepare func(place) error
	args    func(place) []string
	environ func(place) []string
}

// place holds the directory and addresses of a process.
type place struct {
	dir     string // of all processes of the Server
	port    int
	address string
	// behind is the URL of the process before this one, if there is one.
	behind string
}

func (p place) data() string  { return filepath.Join(p.dir, "data") }
func (p place) users() string { return filepath.Join(p.dir, "users") }

var versityOverFiles = program{
	tool:    versitygw,
	prepare: firstOf(checkAttributes, writeUsers),
	args: func(p place) []string {
		return []string{"--port", p.address, "--region", Region, "--iam-dir", p.users(), "--quiet", "--keep-alive", "posix", p.data()}
	},
	environ: versityRoot,
}

var versityOverAzurite = program{
	tool: versitygw,
	args: func(p place) []string {
		return []string{
			"--port", p.address, "--region", Region, "--quiet", "--keep-alive", "azure",
			"--account", Access, "--access-key", azureKey, "--url", p.behind + "/" + Access,
		}
	},
	environ: versityRoot,
}

func versityRoot(place) []string {
	return []string{"ROOT_ACCESS_KEY=" + Access, "ROOT_SECRET_KEY=" + Secret}
}

var minioOverFiles = program{
	tool: minio,
	args: func(p place) []string { return []string{"server", "--address", p.address, "--quiet", p.data()} },
	environ: func(p place) []string {
		return []string{"MINIO_ROOT_USER=" + Access, "MINIO_ROOT_PASSWORD=" + Secret, "MINIO_REGION=" + Region, "MINIO_BROWSER=off", "MINIO_UPDATE=off"}
	},
}

var rcloneOverFiles = program{
	tool: rclone,
	args: func(p place) []string {
		// With a cache of directories, removed ones would still be listed for a while.
		return []string{"serve", "s3", "--addr", p.address, "--auth-key", Access + "," + Secret, "--dir-cache-time", "0", p.data()}
	},
	environ: func(p place) []string { return []string{"RCLONE_CONFIG=" + filepath.Join(p.dir, "rclone.conf")} },
}

var azuriteInMemory = program{
	tool:   azurite,
	hidden: true,
	args: func(p place) []string {
		return []string{
			"--blobHost", ports.Host, "--blobPort", strconv.Itoa(p.port),
			"--inMemoryPersistence", "--silent", "--disableTelemetry", "--skipApiVersionCheck",
		}
	},
	environ: func(place) []string { return []string{"AZURITE_ACCOUNTS=" + Access + ":" + azureKey} },
}

func firstOf(steps ...func(place) error) func(place) error {
	return func(p place) error {
		for _, step := range steps {
			if err := step(p); err != nil {
				return err
			}
		}
		return nil
	}
}

// Kind is a kind of server, or of several that work together.
type Kind string

const (
	// Versity is one versitygw over a directory.
	Versity Kind = "versity"
	// Versity2 is two versitygw over one directory, each with a URL of its own.
	Versity2 Kind = "versity2"
	// MinIO is one server over a directory.
	MinIO Kind = "minio"
	// Rclone is `rclone serve s3` over a directory. It ignores conditions.
	Rclone Kind = "rclone"
	// Azurite is versitygw in front of azurite. It checks a condition before it writes, so two
	// writes at once can both succeed.
	Azurite Kind = "versity-azurite"
	// Stub is a handler in this process that serves any user and ignores conditions.
	Stub Kind = "stub"
)

// Kinds returns all kinds, the default first.
func Kinds() []Kind { return []Kind{Versity, Versity2, MinIO, Rclone, Azurite, Stub} }

// KindOf returns the kind with a name. For any other name, the error lists the names.
func KindOf(name string) (Kind, error) {
	if k := Kind(name); slices.Contains(Kinds(), k) {
		return k, nil
	}
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return "", fmt.Errorf("there is no server %q: there are %s", name, strings.Join(names, ", "))
}

// layout returns the processes of a kind. Each process needs those before it. The list is empty for
// a handler in this process.
func (k Kind) layout() []program {
	switch k {
	case Versity:
		return []program{versityOverFiles}
	case Versity2:
		return []program{versityOverFiles, versityOverFiles}
	case MinIO:
		return []program{minioOverFiles}
	case Rclone:
		return []program{rcloneOverFiles}
	case Azurite:
		return []program{azuriteInMemory, versityOverAzurite}
	}
	return nil
}

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

// AzuriteCommand returns the command that runs the blob service of azurite, without arguments. It
// installs azurite if it is missing.
func AzuriteCommand(ctx context.Context) ([]string, error) { return azurite.ready(ctx) }

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

// stub is a server in this process that serves any user and ignores all conditions.
type stub struct {
	server   http.Server
	listener net.Listener
}

func newStub(port int) (*stub, error) {
	honest, err := s3fake.Memory()
	if err != nil {
		return nil, err
	}
	s := &stub{server: http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
		honest.ServeHTTP(w, r)
	})}}
	if s.listener, err = net.Listen("tcp", ports.Address(port)); err != nil {
		return nil, err
	}
	go func() { _ = s.server.Serve(s.listener) }()
	return s, nil
}

func (s *stub) url() string { return "http://" + s.listener.Addr().String() }
func (s *stub) close()      { _ = s.server.Close() }
