package kafkad

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tenure-go/tenure/test/internal/process"
)

// broker is one broker process, which can be started again on its files and ports.
type broker struct {
	process.Process
	n       int
	address string   // for the super user
	java    []string // the command, without its main class
}

func newBroker(n int, address, dir string, java []string) *broker {
	b := &broker{n: n, address: address, java: java}
	b.Name, b.Dir, b.Log = fmt.Sprint("broker ", n), dir, filepath.Join(dir, "log")
	b.Command = append(append([]string{}, java...),
		"-Xms128m", "-Xmx384m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"kafka.Kafka", b.properties())
	return b
}

func (b *broker) properties() string { return filepath.Join(b.Dir, "server.properties") }

// format writes the files that a broker needs when it starts for the first time.
func (b *broker) format(ctx context.Context, l layout) error {
	if err := os.WriteFile(b.properties(), []byte(l.properties(b.n, filepath.Join(b.Dir, "data"))), 0o600); err != nil {
		return err
	}
	// The equals sign is needed because an id may begin with "-".
	args := append(append([]string{}, b.java[1:]...), "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"kafka.tools.StorageTool", "format", "--cluster-id="+l.ID, "--config", b.properties())
	if out, err := exec.CommandContext(ctx, b.java[0], args...).CombinedOutput(); err != nil {
		return fmt.Errorf("format broker %d: %w: %s", b.n, err, process.Tail(out))
	}
	return nil
}
