package s3d

import (
	"path/filepath"
	"strconv"

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
