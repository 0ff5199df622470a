package kafkad

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// broker is one broker process, which can be started again on its files and ports.
type broker struct {
	n        int
	dir      string
	java     []string // the command, without its main class
	detached bool

	mu      sync.Mutex
	wanted  bool // started, and not ended by a signal
	process *os.Process
	ended   chan struct{} // closed when the process has ended; nil if it is not a child of this one
}

func (b *broker) properties() string { return filepath.Join(b.dir, "server.properties") }
func (b *broker) log() string        { return filepath.Join(b.dir, "log") }
func (b *broker) pidFile() string    { return filepath.Join(b.dir, "pid") }

func (b *broker) run(ctx context.Context, args ...string) *exec.Cmd {
	all := append(append([]string{}, b.java[1:]...), args...)
	return exec.CommandContext(ctx, b.java[0], all...)
}

// format writes the files that a broker needs when it starts for the first time.
func (b *broker) format(ctx context.Context, l layout) error {
	if err := os.WriteFile(b.properties(), []byte(l.properties(b.n, filepath.Join(b.dir, "data"))), 0o600); err != nil {
		return err
	}
	// The equals sign is needed because an id may begin with "-".
	cmd := b.run(ctx, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "kafka.tools.StorageTool", "format", "--cluster-id="+l.ID, "--config", b.properties())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("format broker %d: %w: %s", b.n, err, tail(out))
	}
	return nil
}

// start starts the process, and does not wait until it answers.
func (b *broker) start() error {
	if b.runs() {
		return fmt.Errorf("broker %d runs already", b.n)
	}
	out, err := os.OpenFile(b.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has its own descriptor
	cmd := b.run(context.Background(), "-Xms128m", "-Xmx384m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"kafka.Kafka", b.properties())
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, out, out
	if b.detached {
		machine.Apart(cmd)
	} else {
		machine.Together(cmd)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b.adopt(cmd)
	return os.WriteFile(b.pidFile(), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

func (b *broker) adopt(cmd *exec.Cmd) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := make(chan struct{})
	b.process, b.ended, b.wanted = cmd.Process, ended, true
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
}

// find looks for a process that another process has started.
func (b *broker) find() {
	written, err := os.ReadFile(b.pidFile())
	if err != nil {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(written)))
	if err != nil || !isOurs(pid, b.properties()) {
		return
	}
	b.process, _ = os.FindProcess(pid)
}

// current returns the process, nil if there was none, and the channel that is closed at its end.
func (b *broker) current() (*os.Process, chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process, b.ended
}

// runs reports whether the process has not ended. A paused one runs.
func (b *broker) runs() bool {
	process, ended := b.current()
	switch {
	case process == nil:
		return false
	case ended == nil:
		return isOurs(process.Pid, b.properties())
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// shouldRun reports whether the process was started and got no signal from this package.
func (b *broker) shouldRun() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wanted
}

// signal sends a signal to the process.
func (b *broker) signal(sig os.Signal) error {
	process, _ := b.current()
	b.mu.Lock()
	b.wanted = false
	b.mu.Unlock()
	if process == nil || !b.runs() {
		return fmt.Errorf("broker %d: %w", b.n, os.ErrProcessDone)
	}
	return process.Signal(sig)
}

// end sends a signal and waits until the process has ended.
func (b *broker) end(ctx context.Context, sig os.Signal) error {
	if err := b.signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	for b.runs() {
		select {
		case <-ctx.Done():
			return b.fault("does not end")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// fault returns an error with the end of the broker's log.
func (b *broker) fault(what string) error {
	said, _ := os.ReadFile(b.log())
	return fmt.Errorf("broker %d %s: %s", b.n, what, tail(said))
}
