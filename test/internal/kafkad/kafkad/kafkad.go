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
	"crypto/rand"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/tools"
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

// The users of the listeners with SASL/PLAIN. The password of each is its name. They have only the
// rights that Allow gives.
const (
	Candidate = "candidate"
	Observer  = "observer"
	Stranger  = "stranger"
)

// layout holds the ports of a cluster.
type layout struct {
	ID      string
	Plain   [Brokers]int // for the super user, and among the brokers
	SASL    [Brokers]int // for the users with checked rights
	Control [Brokers]int // of the controllers, which are in the same processes
}

func newLayout() (layout, error) {
	free, err := ports.Free(3 * Brokers)
	if err != nil {
		return layout{}, err
	}
	var id [16]byte
	_, _ = rand.Read(id[:])
	l := layout{ID: base64.RawURLEncoding.EncodeToString(id[:])}
	copy(l.Plain[:], free)
	copy(l.SASL[:], free[Brokers:])
	copy(l.Control[:], free[2*Brokers:])
	return l, nil
}

// properties returns the configuration of broker n, counted from 1, with its data in a directory.
// Sessions are shorter than Kafka's default of 9 s, so that tests wait less for the next leader of
// a partition.
func (l layout) properties(n int, data string) string {
	var voters []string
	for i, port := range l.Control {
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, ports.Address(port)))
	}
	plain, sasl := "PLAINTEXT://"+ports.Address(l.Plain[n-1]), "SASL_PLAINTEXT://"+ports.Address(l.SASL[n-1])
	var users strings.Builder
	for _, user := range []string{Candidate, Observer, Stranger} {
		fmt.Fprintf(&users, " user_%s=%q", user, user)
	}
	return strings.Join([]string{
		"process.roles=broker,controller",
		fmt.Sprintf("node.id=%d", n),
		"controller.quorum.voters=" + strings.Join(voters, ","),
		"controller.listener.names=CONTROLLER",
		"inter.broker.listener.name=PLAINTEXT",
		fmt.Sprintf("listeners=%s,%s,CONTROLLER://%s", plain, sasl, ports.Address(l.Control[n-1])),
		fmt.Sprintf("advertised.listeners=%s,%s", plain, sasl),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
		"listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required" +
			users.String() + ";",
		"listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms=6000",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS",
		"log.dirs=" + data,
		settings,
	}, "\n")
}

// settings are the same for all brokers: three copies of everything, two of them needed for a
// write, short sessions, and few threads, since all brokers share a small machine.
const settings = `
auto.create.topics.enable=false
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.num.partitions=3
initial.broker.registration.timeout.ms=600000
broker.heartbeat.interval.ms=1000
broker.session.timeout.ms=6000
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=6000
group.consumer.min.heartbeat.interval.ms=500
group.consumer.heartbeat.interval.ms=1000
log.retention.check.interval.ms=1000
log.segment.delete.delay.ms=1000
num.network.threads=2
num.io.threads=2
`

// patience is the time limit for brokers to answer or to end. Even on a busy machine, only a broker
// that hangs takes longer.
const patience = 10 * time.Minute

// Kill ends a broker by SIGKILL, also a paused one. It returns when the process is gone.
func (c *Cluster) Kill(n int) error { return c.on(n, (*broker).Kill) }

// Stop ends a broker by SIGTERM, as an operator does: the broker hands over its partitions and
// leaves. Stop returns when the process is gone.
func (c *Cluster) Stop(n int) error { return c.on(n, (*broker).Stop) }

// Pause stops a broker by SIGSTOP: it stays connected and silent. On Windows it is not supported.
func (c *Cluster) Pause(n int) error { return c.on(n, (*broker).Pause) }

// Resume continues a paused broker.
func (c *Cluster) Resume(n int) error { return c.on(n, (*broker).Resume) }

func (c *Cluster) on(n int, do func(*broker) error) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	return do(b)
}

// Start starts a broker again, on its files. It returns when the broker is a member of the cluster
// again.
func (c *Cluster) Start(n int) error {
	b, err := c.broker(n)
	if err != nil {
		return err
	}
	if err := b.Begin(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.joined(ctx, b)
}

// End ends all brokers at once, also paused ones; their files stay in the directory.
func (c *Cluster) End() error { return c.each((*broker).Kill) }

// Heal continues paused brokers and starts those that ended. It returns when all copies of all
// partitions are complete.
func (c *Cluster) Heal(ctx context.Context) error {
	var errs []error
	for _, b := range c.brokers {
		if !b.Runs() {
			errs = append(errs, b.Begin())
			continue
		}
		errs = append(errs, c.Resume(b.n))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.Complete(ctx)
}
