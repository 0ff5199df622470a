//go:build integration

package natstest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	election "github.com/tenure-go/tenure/compat/nats-kv-leader-elect"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/driver/natskv/natstest"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// site is a server, and a home directory in which the nats command knows it by two contexts: local,
// which is selected, and away.
type site struct {
	*world
	program string // the command
	home    string
}

func newSite(t *testing.T) *site {
	t.Helper()
	const user, password = "user", "s3cret"
	s := natstest.StartServer(t, func(o *server.Options) { o.Username, o.Password = user, password })
	w := &world{TB: t, server: s}
	w.nc, w.js = w.connect(nats.UserInfo(user, password))
	x := &site{world: w, program: filepath.Join(t.TempDir(), "election"), home: t.TempDir()}
	build := exec.Command("go", "build", "-o", x.program, "github.com/tenure-go/tenure/compat/nats-kv-leader-elect/cmd/election")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	x.context("local", s.ClientURL())
	x.context("away", "nats://127.0.0.1:1")
	x.must(os.WriteFile(filepath.Join(x.home, "nats", "context.txt"), []byte("local"), 0o600))
	return x
}

func (x *site) context(name, url string) {
	x.Helper()
	dir := filepath.Join(x.home, "nats", "context")
	x.must(os.MkdirAll(dir, 0o700))
	text := fmt.Sprintf(`{"url": %q, "user": "user", "password": "s3cret"}`, url)
	x.must(os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600))
}

// bucket creates a bucket with this lease.
func (x *site) bucket(lease time.Duration) nats.KeyValue {
	x.Helper()
	kv, err := x.js.CreateKeyValue(&nats.KeyValueConfig{Bucket: "DEMO_ELECTION", TTL: 3 * lease})
	x.must(err)
	return kv
}

// command is the command in its own process.
type command struct {
	x   *site
	cmd *exec.Cmd

	mu    sync.Mutex
	lines bytes.Buffer
}

func (x *site) start(env ...string) *command {
	x.Helper()
	c := &command{x: x, cmd: exec.Command(x.program)}
	c.cmd.Env = append(os.Environ(), append(env, "XDG_CONFIG_HOME="+x.home)...)
	c.cmd.Stdout, c.cmd.Stderr = c, c
	x.must(c.cmd.Start())
	x.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	return c
}

func (c *command) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines.Write(p)
}

func (c *command) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines.String()
}

// says waits until the command has printed a match.
func (c *command) says(pattern string) []string {
	c.x.Helper()
	var found []string
	wait.Succeeds(c.x, "the command says "+pattern, func(context.Context) error {
		said := c.said()
		if found = regexp.MustCompile(pattern).FindStringSubmatch(said); found == nil {
			return fmt.Errorf("it says: %s", said)
		}
		return nil
	})
	return found
}

// ends waits for the end of the command.
func (c *command) ends() error {
	c.x.Helper()
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-wait.Context(c.x).Done():
		c.x.Fatalf("goes on: %s", c.said())
		return nil
	}
}

// released is a record that the first candidate need not wait for.
const released = `{"leaderID":"gone","term":1,"leaseMillis":1000,"incarnation":"i","seq":1,"nonce":"n","released":true}`

// TestCommand: a leader, a fail-over that is forced as the documentation says, and a graceful end.
func TestCommand(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	kv := x.bucket(30 * time.Second) // long enough for a leader on a slow machine
	_, err := kv.Create("other", []byte(released))
	x.must(err)
	c := x.start("CONTEXT=local", "NOSPLAY=1", "KEY=other", "WORKERS=3")
	first := c.says(`(worker \d): became leader, with token (\d+)`)
	c.says(first[1] + `: campaigning while in state leader`)
	c.says(`campaigning while in state candidate`)
	c.says(first[1] + `: doing work`)

	x.must(kv.Delete("other"))
	c.says(first[1] + `: lost leadership(?s:.*): became leader, with token`)

	if runtime.GOOS == "windows" {
		t.Skip("there are no such signals")
	}
	x.must(c.cmd.Process.Signal(syscall.SIGTERM))
	if err := c.ends(); err != nil {
		t.Errorf("ends with %v: %s", err, c.said())
	}
	c.says(`: lost leadership(?s:.*): lost leadership`)
	record, err := kv.Get("other")
	x.must(err)
	if !strings.Contains(string(record.Value()), `"released":true`) {
		t.Errorf("leaves behind %s", record.Value())
	}
	if strings.Contains(c.said(), "worker 4") {
		t.Error("there are more workers than WORKERS")
	}
}

// TestCommandWithoutSettings shows the behavior without any setting.
func TestCommandWithoutSettings(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	kv := x.bucket(time.Second)
	c := x.start()
	c.says(`worker 10: starting election`)
	c.says(`became leader`)
	if strings.Contains(c.said(), "worker 11") {
		t.Error("there are more than ten workers")
	}
	_, err := kv.Get("demo")
	x.must(err)
}

func TestCommandReportsErrors(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	for _, c := range []struct {
		why  string
		env  []string
		want string
	}{
		{"no bucket", nil, "make it with: nats kv add --ttl 31s DEMO_ELECTION"},
		{"an unknown context", []string{"CONTEXT=elsewhere"}, `unknown context "elsewhere"`},
		{"no server", []string{"CONTEXT=away"}, "no servers available"},
		{"no workers", []string{"WORKERS=0"}, `WORKERS is "0"`},
		{"not a number of workers", []string{"WORKERS=many"}, `WORKERS is "many"`},
	} {
		t.Run(c.why, func(t *testing.T) {
			cmd := x.start(c.env...)
			if err := cmd.ends(); err == nil || !strings.Contains(cmd.said(), c.want) || strings.Contains(cmd.said(), "s3cret") {
				t.Errorf("ends with %v: %s", err, cmd.said())
			}
		})
	}
	x.bucket(time.Second)
	cmd := x.start("KEY=no key")
	if err := cmd.ends(); err == nil || !strings.Contains(cmd.said(), `key "no key"`) {
		t.Errorf("a key that cannot be: ends with %v: %s", err, cmd.said())
	}
}

// TestCommandAmongOldCandidates: a leader of nats-kv-leader-elect has crashed.
func TestCommandAmongOldCandidates(t *testing.T) {
	t.Parallel()
	x := newSite(t)
	_, err := x.bucket(time.Second).Create("demo", []byte("worker 1"))
	x.must(err)
	c := x.start("MIGRATING=1", "NOSPLAY=1", "WORKERS=2")
	c.says(`became leader`)
}

// TestFootprint measures the memory of a waiting candidate in this process, over a handle and over
// a shared store. It includes the server where a case says so.
func TestFootprint(t *testing.T) {
	if testing.Short() {
		t.Skip("short, and perhaps under the race detector, which takes memory of its own")
	}
	for _, c := range []struct {
		over       string
		bytes      int
		goroutines float64
	}{{"a shared store", 40_000, 2}, {"the handle", 400_000, 10}} {
		t.Run(c.over, func(t *testing.T) {
			onServer(t, func(w *world) {
				kv := w.bucket(ttl)
				store, err := natskv.Open(w.Context(), w.modern(), kv.Bucket())
				w.must(err)
				defer store.Close()
				fill := func(name string, n int, opts ...election.Option) {
					for i := range n {
						e, err := election.NewElection(name, fmt.Sprint("e", i), kv, append([]election.Option{election.WithoutSplay()}, opts...)...)
						w.must(err)
						draft(w, name).begin(e)
					}
					time.Sleep(3 * lease)
				}
				const many = 60
				fill("leader", many, election.WithStore(store))
				var opts []election.Option
				if c.over == "a shared store" {
					opts = append(opts, election.WithStore(store))
				}
				goroutines, bytes := runtime.NumGoroutine(), heap()
				fill("waiting", many, opts...)
				bytes, goroutines = (heap()-bytes)/many, runtime.NumGoroutine()-goroutines
				w.Logf("%d bytes and %.2f goroutines each", bytes, float64(goroutines)/many)
				if bytes > c.bytes || float64(goroutines)/many > c.goroutines {
					w.Error("takes up more than it did")
				}
			})
		})
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse) //nolint:gosec // far from the limit
}

// TestWithoutOneRuleFleetsFail: the referee of TestRollingMigration finds the missing rule, too.
func TestWithoutOneRuleFleetsFail(t *testing.T) {
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
	for name, spoiled := range map[string]natskv.Translator{
		"a shorter wait":    seen(isOld, func(r *record.Record) { r.Lease /= 2 }),
		"a shorter vacancy": seen(vacant, func(r *record.Record) { r.Lease = lease }),
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(60) {
				if r := inFleet(t, seed, conditions{spoiled: spoiled}, (*fleet).migrate); len(r.Faults) > 0 {
					t.Logf("seed %d: %s", seed, r.Faults[0])
					return
				}
			}
			t.Error("no fault in 60 fleets")
		})
	}
}

// TestMigrationInRealTime migrates, and then half of the way back, with a server on a network and
// files.
func TestMigrationInRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("one pass only, because of -short")
	}
	t.Parallel()
	// An old candidate that is held up for a quarter of the TTL still believes that it leads.
	f := newFleet(t, 1, conditions{calm: true}, jetstream.FileStorage, newWorld(t).modern)
	for i := range 3 {
		f.startOld(i, time.Second)
	}
	f.await("an old one leads", wait.Left(), f.anyLeads)
	for i := range 3 {
		f.startNew(i)
		time.Sleep(time.Second)
		f.End(i, i == 0)
		f.await("a candidate leads", wait.Left(), f.anyLeads)
		if i == 1 { // the way back
			f.End(3, false)
			f.End(4, false)
			f.await("an old one leads", wait.Left(), f.At(2).Leads)
			f.startNew(0)
			f.startNew(1)
		}
	}
	i, _ := f.Leader()
	f.End(i, true)
	f.await("a candidate leads", wait.Left(), f.anyLeads)
	r := f.Close()
	for _, fault := range r.Faults {
		t.Error(fault)
	}
	t.Log(r)
}
