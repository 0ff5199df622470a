// Package kafkad runs a cluster of three Apache Kafka brokers, each in a process of its own. Tests
// can pause them, kill them, and start them again on their files.
//
// If the brokers' program is missing, Maven fetches the version in pom.xml into TENURE_TOOLS, or
// else into a directory of the user's cache. It needs Java 17 or newer. The brokers listen only on
// free ports of 127.0.0.1. They keep three copies of each topic and need two for a write. Together
// they take about 1 GB of memory, and ten seconds to start. To run them by hand: `go run
// ./test/internal/serve kafka`.
package kafkad

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/tenure-go/tenure/internal/test/ports"
)

// Brokers is the number of brokers. They are numbered from 1, which is also their id in the
// cluster.
const Brokers = 3

// Cluster is three brokers over one directory. Its methods may be called concurrently, except those
// that change the same broker.
type Cluster struct {
	layout  layout
	brokers [Brokers]*broker
}

// Up starts a new cluster in a directory, and removes the files of earlier ones there. It returns
// when topics can be created. An error names a missing program, or has the end of a broker's log.
// End ends the brokers, and so does the end of this process.
func Up(ctx context.Context, dir string) (*Cluster, error) {
	jars, err := Install(ctx)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		c, err := newCluster(dir, jars)
		if err != nil {
			return nil, err
		}
		if err = c.begin(ctx); err == nil {
			return c, nil
		}
		again := try < tries && (c.crowded() || c.endedEarly() != nil)
		if err = errors.Join(err, c.End()); !again {
			return nil, err
		}
	}
}

// tries is how often Up starts the brokers if another process has taken a port, or if a broker has
// ended by itself, as on a busy machine.
const tries = 3

// crowded reports whether a broker found one of its ports taken.
func (c *Cluster) crowded() bool {
	for _, b := range c.brokers {
		said, _ := os.ReadFile(b.Log)
		if bytes.Contains(said, []byte("Address already in use")) {
			return true
		}
	}
	return false
}

// begin formats and starts all brokers.
func (c *Cluster) begin(ctx context.Context) error {
	if err := c.each(func(b *broker) error { return b.format(ctx, c.layout) }); err != nil {
		return err
	}
	for _, b := range c.brokers {
		if err := b.Begin(); err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}

func newCluster(dir, jars string) (*Cluster, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("Kafka needs Java 17 or newer on the path: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	l, err := newLayout()
	if err != nil {
		return nil, err
	}
	c := &Cluster{layout: l}
	command := []string{java, "-cp", filepath.Join(jars, "*"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	for i := range c.brokers {
		b := newBroker(i+1, c.Seeds()[i], filepath.Join(dir, fmt.Sprint("broker", i+1)), command)
		if err := os.RemoveAll(b.Dir); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(b.Dir, 0o700); err != nil {
			return nil, err
		}
		c.brokers[i] = b
	}
	return c, nil
}

// each calls do for all brokers at the same time, and waits.
func (c *Cluster) each(do func(*broker) error) error {
	var all sync.WaitGroup
	var errs [Brokers]error
	for i, b := range c.brokers {
		all.Go(func() { errs[i] = do(b) })
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

// broker returns the broker with a number.
func (c *Cluster) broker(n int) (*broker, error) {
	if n < 1 || n > Brokers {
		return nil, fmt.Errorf("there is no broker %d: they are 1 to %d", n, Brokers)
	}
	return c.brokers[n-1], nil
}

// Seeds returns the addresses for the super user, without encryption or password.
func (c *Cluster) Seeds() []string { return addresses(c.layout.Plain) }

// SASLSeeds returns the addresses for the other users, with SASL/PLAIN.
func (c *Cluster) SASLSeeds() []string { return addresses(c.layout.SASL) }

func addresses(on [Brokers]int) []string {
	var all []string
	for _, port := range on {
		all = append(all, ports.Address(port))
	}
	return all
}
