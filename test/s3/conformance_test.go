// Package s3 tests elections on object storage: on a server within the process in virtual time, and
// with the build tag integration over sockets and on real servers.
package s3

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/electiontest"
	"github.com/tenure-go/tenure/internal/pipenet"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

// fakeBucket is the bucket of the servers in this process.
const fakeBucket = "elections"

// startFake starts a server in the bubble of the caller.
func startFake(t testing.TB, n *pipenet.Network, seed uint64, plan s3fake.Plan) *s3fake.Server {
	t.Helper()
	s, err := s3fake.StartOn(n, seed, plan, fakeBucket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func openFake(t testing.TB, client *sdk.Client, opts ...s3object.Option) *s3object.Store {
	t.Helper()
	s, err := s3object.New(client, fakeBucket, append(opts, s3object.WithPrefix("tests"))...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// distance delays most requests and answers by some milliseconds, as networks do. Without it,
// virtual time would not advance: calls with short deadlines would never end in between, and races
// would always run in the order of their start.
func distance() s3fake.Plan {
	return s3fake.Plan{
		Chances:  map[s3fake.Fault]float64{s3fake.DelayBefore: 0.5, s3fake.DelayAfter: 0.4},
		MaxDelay: 4 * time.Millisecond,
	}
}

// bubbleHarness is on its own server and network, in the bubble of the caller. Without versions a
// removal leaves no marker, so a delete is a purge.
func bubbleHarness(t testing.TB, opts ...s3object.Option) drivertest.Harness {
	t.Helper()
	n := new(pipenet.Network)
	s := startFake(t, n, 1, distance())
	r, err := relay.Over(n, "", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	url := "http" + strings.TrimPrefix(r.URL(), "nats")
	operator := s.Client()
	return drivertest.Harness{
		Store:  openFake(t, s.ClientOf(url), opts...),
		Peer:   openFake(t, operator, opts...),
		Denied: openFake(t, s.Nobody(url)),
		Purge: func(ctx context.Context, key string) error {
			_, err := operator.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: aws.String(fakeBucket), Key: aws.String("tests/" + key)})
			return err
		},
		Recreate: func(ctx context.Context) error { return recreate(ctx, operator) },
		Cut: func() func() {
			r.Blackhole()
			return r.Heal
		},
		FloorTick:       time.Second,
		ContentVersions: true,
	}
}

// recreate deletes the bucket with all of its objects, and creates it again.
func recreate(ctx context.Context, operator *sdk.Client) error {
	bucket := aws.String(fakeBucket)
	objects, err := operator.ListObjectsV2(ctx, &sdk.ListObjectsV2Input{Bucket: bucket})
	if err != nil {
		return err
	}
	for _, o := range objects.Contents {
		if _, err := operator.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: bucket, Key: o.Key}); err != nil {
			return err
		}
	}
	if _, err := operator.DeleteBucket(ctx, &sdk.DeleteBucketInput{Bucket: bucket}); err != nil {
		return err
	}
	_, err = operator.CreateBucket(ctx, &sdk.CreateBucketInput{Bucket: bucket})
	return err
}

func TestConformance(t *testing.T) {
	for name, opts := range map[string][]s3object.Option{"quoted": nil, "unquoted": {s3object.WithUnquotedETags()}} {
		t.Run(name, func(t *testing.T) {
			drivertest.RunInBubbles(t, func(t testing.TB) drivertest.Harness {
				h := bubbleHarness(t, opts...)
				h.Rounds = 10 // more on real servers
				return h
			})
		})
	}
}

func TestElection(t *testing.T) {
	electiontest.RunInBubbles(t, func(t testing.TB) drivertest.Harness { return bubbleHarness(t) })
}
