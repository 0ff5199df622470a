package s3d

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/test/ports"
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
	Azurite Kind = "azurite"
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
