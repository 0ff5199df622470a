package gcsd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/tools"
)

// The emulator, which tests run as a process: its module needs that of Google's client library.
const emulator, emulatorVersion = "fake-gcs-server", "v1.56.1"

// Install returns the emulator's program.
func Install(ctx context.Context) (string, error) {
	dir, err := tools.Dir("gcs", emulator+"-"+emulatorVersion, func(fresh string) (string, error) {
		cmd := exec.CommandContext(ctx, "go", "install", "github.com/fsouza/"+emulator+"@"+emulatorVersion)
		cmd.Env = append(os.Environ(), "GOBIN="+fresh, "GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0")
		return fresh, tools.Run(cmd)
	})
	return filepath.Join(dir, emulator), err
}

// emulated is a bucket on the emulator. It keeps objects in memory, so it is paused and never
// killed: its files have the content and the generation of an object in two steps.
type emulated struct {
	*process.Process
	url string
}

func startEmulator(t testing.TB, _ bool) rig.Site {
	program, err := Install(wait.Context(t))
	rig.Must(t, err)
	free, err := ports.Free(1)
	rig.Must(t, err)
	address := ports.Address(free[0])
	e := emulated{&process.Process{Command: []string{
		program, "-scheme", "http", "-host", ports.Host, "-port", strconv.Itoa(free[0]), "-backend", "memory", "-log-level", "error",
		"-public-host", address,
	}, Dir: t.TempDir()}, "http://" + address}
	e.Answers = e.create
	rig.Must(t, e.Start())
	t.Cleanup(func() { _ = e.Kill() })
	return e
}

// create makes the bucket.
func (e emulated) create(ctx context.Context) error {
	return e.request(ctx, http.MethodPost, "/storage/v1/b", `{"name":"`+bucket+`"}`)
}

func (e emulated) request(ctx context.Context, method, path, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, e.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusConflict {
		return fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return nil
}

// Open connects over a relay.
func (e emulated) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r, err := relay.New(e.url)
	rig.Must(t, err)
	t.Cleanup(r.Close)
	return newStore(t, relayed(r), bucket, ""), r
}

func (e emulated) Kit(testing.TB) drivertest.Harness {
	remove := func(ctx context.Context, key string) error {
		return e.request(ctx, http.MethodDelete, "/storage/v1/b/"+bucket+"/o/"+strings.ReplaceAll(key, "/", "%2F"), "")
	}
	return drivertest.Harness{Delete: remove, Purge: remove, FloorTick: time.Second, Lease: 5 * time.Second}
}

func (e emulated) Faults() []rig.Fault {
	all := rig.Of(func(*rand.Rand) rig.Server { return e }, writers)
	return all[len(all)-1:]
}
