package azured

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/azureblob"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/internal/test/azurefake"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// key is that of the emulator's account, in base64.
const key = "c2VjcmV0IG9mIHRoZSB0ZXN0cw=="

// emulated is a container on azurite. It keeps blobs in memory, so it is paused and never killed.
type emulated struct {
	*process.Process
	url string
}

func startEmulator(t testing.TB, _ bool) rig.Site {
	command, err := s3d.AzuriteCommand(wait.Context(t))
	rig.Must(t, err)
	free, err := ports.Free(1)
	rig.Must(t, err)
	e := emulated{&process.Process{Command: append(command,
		"--blobHost", ports.Host, "--blobPort", strconv.Itoa(free[0]), "--inMemoryPersistence", "--silent", "--disableTelemetry",
		"--skipApiVersionCheck"), Env: []string{"AZURITE_ACCOUNTS=" + azurefake.Account + ":" + key}, Dir: t.TempDir()},
		"http://" + ports.Address(free[0]),
	}
	e.Answers = e.create
	rig.Must(t, e.Start())
	t.Cleanup(func() { _ = e.Kill() })
	return e
}

// connection returns the connection string for the server or a relay to it.
func connection(url string) string {
	return "AccountName=" + azurefake.Account + ";AccountKey=" + key + ";BlobEndpoint=" + url + "/" + azurefake.Account
}

// create makes the container.
func (e emulated) create(ctx context.Context) error {
	store, err := azureblob.FromConnectionString(connection(e.url), container)
	if err != nil {
		return err
	}
	return store.CreateContainer(ctx)
}

// Open connects over a relay.
func (e emulated) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r, err := relay.New(e.url)
	rig.Must(t, err)
	t.Cleanup(r.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	client := azureblob.WithClient(&http.Client{Transport: transport})
	store, err := azureblob.FromConnectionString(connection(relayed(r)), container, client)
	rig.Must(t, err)
	return store, r
}

func (e emulated) Kit(t testing.TB) drivertest.Harness {
	client, err := azblob.NewClientFromConnectionString(connection(e.url), nil)
	rig.Must(t, err)
	remove := func(ctx context.Context, key string) error {
		_, err := client.DeleteBlob(ctx, container, key, nil)
		if bloberror.HasCode(err, bloberror.BlobNotFound) {
			return nil
		}
		return err
	}
	return drivertest.Harness{Delete: remove, Purge: remove, FloorTick: time.Second}
}

func (e emulated) Faults() []rig.Fault {
	all := rig.Of(func(*rand.Rand) rig.Server { return e }, writers)
	return all[len(all)-1:]
}
