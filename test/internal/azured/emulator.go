package azured

import (
	"context"
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
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// key is that of the emulator's account, in base64.
const key = "c2VjcmV0IG9mIHRoZSB0ZXN0cw=="

// emulated is a container on azurite.
type emulated struct{ rig.Emulator }

func startEmulator(ctx context.Context, dir string) (rig.Emulator, error) {
	command, err := s3d.AzuriteCommand(ctx)
	if err != nil {
		return rig.Emulator{}, err
	}
	return rig.StartEmulator(dir, func(port int) *process.Process {
		return &process.Process{Command: append(command, "--blobHost", ports.Host, "--blobPort", strconv.Itoa(port), "--inMemoryPersistence",
			"--silent", "--disableTelemetry", "--skipApiVersionCheck"), Env: []string{"AZURITE_ACCOUNTS=" + azurefake.Account + ":" + key}}
	}, func(ctx context.Context, address string) error { return create(ctx, address, container) })
}

// connection returns the connection string for the server or a relay to it.
func connection(address string) string {
	return "AccountName=" + azurefake.Account + ";AccountKey=" + key + ";BlobEndpoint=http://" + address + "/" + azurefake.Account
}

func create(ctx context.Context, address, container string) error {
	store, err := azureblob.FromConnectionString(connection(address), container)
	if err != nil {
		return err
	}
	return store.CreateContainer(ctx)
}

// Open connects over a relay.
func (e emulated) Open(t testing.TB, _ int) (driver.Store, rig.Way) {
	t.Helper()
	r := rig.Relay(t, e.URL())
	store, err := azureblob.FromConnectionString(connection(r.Address()), container, azureblob.WithClient(rig.HTTPClient(t)))
	rig.Must(t, err)
	return store, r
}

func (e emulated) Kit(t testing.TB) drivertest.Harness {
	client, err := azblob.NewClientFromConnectionString(connection(e.Address()), nil)
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

// ofEmulator is how programs run azurite.
var ofEmulator = rig.Kind{
	Title:  "azurite over loopback and a relay for each candidate",
	Polled: true,
	URL:    place,
	Env:    func(string) []string { return []string{"AZURE_STORAGE_KEY=" + key} },
	Start: func(ctx context.Context, dir string) (rig.Running, error) {
		e, err := startEmulator(ctx, dir)
		return running{e}, err
	},
	Connect: func(c rig.Connector) (rig.Opener, error) {
		client := azureblob.WithClient(c.HTTPClient(rig.Method))
		return func(_ context.Context, container string) (driver.Store, error) {
			return azureblob.FromConnectionString(connection(c.Address()), container, client)
		}, nil
	},
}

type running struct{ rig.Emulator }

// Create makes a container.
func (r running) Create(ctx context.Context, container string) error {
	return create(ctx, r.Address(), container)
}
