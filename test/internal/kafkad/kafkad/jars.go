package kafkad

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tenure-go/tenure/test/internal/tools"
)

// kafkaVersion is the version of the brokers in pom.xml.
const kafkaVersion = "4.3.1"

//go:embed pom.xml
var pom []byte

// Install fetches the brokers' program unless it is there, through Maven, and returns the directory
// of its jars. It takes a minute the first time. It returns an error that names a missing program.
func Install(ctx context.Context) (string, error) {
	dir, err := tools.Dir("kafkad", "kafka-"+kafkaVersion, func(fresh string) (string, error) {
		project, jars := filepath.Join(fresh, "pom.xml"), filepath.Join(fresh, "jars")
		if err := os.WriteFile(project, pom, 0o600); err != nil {
			return "", err
		}
		fmt.Fprintf(os.Stderr, "kafkad: fetching Kafka %s, once\n", kafkaVersion)
		return jars, tools.Run(exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", project,
			"dependency:copy-dependencies", "-DoutputDirectory="+jars))
	})
	if err != nil {
		return "", fmt.Errorf("Kafka %s cannot be installed: it needs Maven on the path and a repository: %w", kafkaVersion, err)
	}
	return dir, nil
}
