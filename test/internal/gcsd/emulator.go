package gcsd

import (
	"context"
	"fmt"
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
	"github.com/tenure-go/tenure/test/internal/process"
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

// emulated is a bucket on the emulator. Files would have the content and the generation of an
// object in two steps.
type emulated struct{ rig.Emulator }

func startEmulator(ctx context.Context, dir string) (rig.Emulator, error) {
	program, err := Install(ctx)
	if err != nil {
		return rig.Emulator{}, err
	}
	return rig.StartEmulator(dir, func(port int) *process.Process {
		return &process.Process{Command: []string{
			program, "-scheme", "http", "-host", ports.Host, "-port", strconv.Itoa(port), "-backend", "memory", "-log-level", "error",
			"-public-host", ports.Address(port),
		}}
	}, func(ctx context.Context, address string) error {
		return request(ctx, http.MethodPost, "http://"+address+"/storage/v1/b", `{"name":"`+bucket+`"}`)
	})
}

func request(ctx context.Context, method, url, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode >= 300 && answer.StatusCode != http.StatusNotFound && answer.StatusCode != http.StatusConflict {
		return fmt.Errorf("%s %s: %s", method, url, answer.Status)
	}
	return nil
}

// Open connects over a relay.
func (e emulated) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r := rig.Relay(t, e.URL())
	return newStore(t, "http://"+r.Address(), bucket, ""), r
}

func (e emulated) Kit(testing.TB) drivertest.Harness {
	remove := func(ctx context.Context, key string) error {
		return request(ctx, http.MethodDelete, e.URL()+"/storage/v1/b/"+bucket+"/o/"+strings.ReplaceAll(key, "/", "%2F"), "")
	}
	return drivertest.Harness{Delete: remove, Purge: remove, FloorTick: time.Second, Lease: 5 * time.Second}
}
