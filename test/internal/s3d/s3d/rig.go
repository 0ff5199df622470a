package s3d

import (
	"context"
	"crypto/md5"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// Sound returns the kinds of servers on which elections can be held.
func Sound() []Kind { return []Kind{Versity, Versity2, MinIO} }

// writers is the number of clients that contend for an object.
const writers = 16

// Rig is a bucket on sound servers. Leases are longer than the stalls of a busy machine, so that
// elections take minutes.
func Rig(k Kind) rig.Rig {
	r := rig.Rig{Name: string(k), Soak: k != Versity, SoakElections: true, Clients: writers, Start: func(t testing.TB, _ bool) rig.Site {
		s := Start(t, k)
		return site{s, s.Bucket(t)}
	}}
	if k != MinIO {
		r.Rules.Version = etagOf
	}
	if k == Versity {
		r.Kind = ForPrograms(k)
	}
	return r
}

// etagOf returns the version of a value. versitygw 1.8.0 first reads an object's ETag and then
// opens the object, so that the ETag may be that of the content before. It never is that of a later
// content, which could cost a leader its lease.
func etagOf(value string) driver.Version {
	return driver.Version(fmt.Sprintf("%x", md5.Sum([]byte(value))))
}

// site is a bucket on running servers.
type site struct {
	*Server
	bucket string
}

// Open connects to the nth process, if there are several.
func (s site) Open(t testing.TB, n int) (driver.Store, rig.Way) {
	t.Helper()
	urls := s.URLs()
	r, err := relay.New(urls[n%len(urls)])
	rig.Must(t, err)
	t.Cleanup(r.Close)
	_, address, _ := strings.Cut(r.URL(), "://")
	store := NewStore(t, "http://"+address, s.bucket)
	if s.Kind == MinIO {
		return store, r
	}
	return flatKeys{store}, r
}

// NewStore returns a store over its own client, as another process has one.
func NewStore(t testing.TB, url, bucket string, change ...func(*s3.Options)) *s3object.Store {
	t.Helper()
	// Idle connections cost goroutines here and in the relay. These must not count as goroutines of
	// calls that hang.
	transport := &http.Transport{MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	change = append([]func(*s3.Options){func(o *s3.Options) { o.HTTPClient = &http.Client{Transport: transport} }}, change...)
	store, err := s3object.New(Client(url, change...), bucket)
	rig.Must(t, err)
	return store
}

// flatKeys refuses keys with slashes. versitygw keeps an object as a file of the same path, so that
// "a" and "a/b" exclude each other. TestRealPaths checks its answer then.
type flatKeys struct{ *s3object.Store }

func (f flatKeys) CheckKey(key string) error {
	if strings.Contains(key, "/") {
		return fmt.Errorf("key %q: a part of it may be another's file", key)
	}
	return f.Store.CheckKey(key)
}

func (s site) Kit(t testing.TB) drivertest.Harness {
	urls := s.URLs()
	last := urls[len(urls)-1]
	operator := Client(last)
	remove := func(ctx context.Context, key string) error {
		_, err := operator.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(key)})
		return err
	}
	return drivertest.Harness{
		Denied: NewStore(t, last, s.bucket, NoRights(s.Kind)), Delete: remove, Purge: remove,
		FloorTick: time.Second, ContentVersions: true, Lease: 30 * time.Second, Patience: wait.Left(),
	}
}

// NoRights gives a client the credentials of a user without rights. MinIO does not know this user.
func NoRights(k Kind) func(*s3.Options) {
	if k == MinIO {
		return As("nobody", Secret)
	}
	return As(Stranger, StrangerSecret)
}

// at is the process at one URL.
type at struct {
	*Server
	url string
}

func (a at) Start() error {
	ctx, cancel := wait.Background()
	defer cancel()
	return a.Restart(ctx, a.url)
}
func (a at) Stop() error   { return a.with(a.url, (*server).Stop) }
func (a at) Kill() error   { return a.Server.Kill(a.url) }
func (a at) Pause() error  { return a.Server.Pause(a.url) }
func (a at) Resume() error { return a.Server.Resume(a.url) }

func (s site) Faults() []rig.Fault {
	return rig.Of(func(rng *rand.Rand) rig.Server {
		urls := s.URLs()
		return at{s.Server, urls[rng.IntN(len(urls))]}
	}, writers)
}
