package s3

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

const (
	// realVariable names the servers that are wanted, as a list with commas, or "all". They are programs of others, which are
	// fetched and compiled at the first need: nobody who runs `go test` gets that unasked.
	realVariable = "TENURE_S3"
	// realPatience is how long what must happen may take.
	realPatience = 30 * time.Second
)

// soundServers are the servers on which elections can be held.
func soundServers() []s3d.Kind { return []s3d.Kind{s3d.Versity, s3d.Versity2, s3d.MinIO} }

// eachReal runs a test on each of the servers that is wanted, one after another.
func eachReal(t *testing.T, kinds []s3d.Kind, run func(*testing.T, *s3d.Server)) {
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) { run(t, startReal(t, k)) })
	}
}

func startReal(t *testing.T, k s3d.Kind) *s3d.Server {
	t.Helper()
	wanted := strings.Split(os.Getenv(realVariable), ",")
	for _, name := range wanted {
		if name == "" || name == "all" {
			continue
		}
		if _, err := s3d.KindOf(name); err != nil {
			t.Fatalf("%s: %v", realVariable, err)
		}
	}
	if testing.Short() || !slices.Contains(wanted, "all") && !slices.Contains(wanted, string(k)) {
		t.Skipf("it installs a server: %s=%s go test -count=1 -run Real ./test/s3", realVariable, k)
	}
	return s3d.Start(t, k)
}

// realStore is a store over a client of its own, as another process has one.
func realStore(t testing.TB, url, bucket string, change ...func(*s3.Options)) *s3object.Store {
	t.Helper()
	// Idle connections cost goroutines here and in the relay, which shall not be taken for those of calls that hang.
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	change = append([]func(*s3.Options){func(o *s3.Options) { o.HTTPClient = &http.Client{Transport: transport} }}, change...)
	store, err := s3object.New(s3d.Client(url, change...), bucket)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// realRelay is a way to a server that can be cut.
func realRelay(t testing.TB, url string) (*relay.Relay, string) {
	t.Helper()
	r, err := relay.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	_, address, _ := strings.Cut(r.URL(), "://")
	return r, "http://" + address
}

func realContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), realPatience)
	t.Cleanup(cancel)
	return ctx
}

func lastOf(urls []string) string { return urls[len(urls)-1] }
