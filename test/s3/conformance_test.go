package s3

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/s3fake"
)

// TestMain lets more tests run side by side than there are processors: they wait far more than they work.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// fakeBucket is the bucket of the servers in this process.
const fakeBucket = "elections"

func startFake(t testing.TB, seed uint64, plan s3fake.Plan) *s3fake.Server {
	t.Helper()
	s, err := s3fake.Start(seed, plan, fakeBucket)
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

// fakeHarness is on a server of its own. Without versions a removal leaves no marker, so that a delete is a purge.
func fakeHarness(t testing.TB, opts ...s3object.Option) drivertest.Harness {
	t.Helper()
	s := startFake(t, 0, s3fake.Plan{})
	operator := s.Client()
	h := drivertest.Harness{
		Peer: openFake(t, operator, opts...),
		Purge: func(ctx context.Context, key string) error {
			_, err := operator.DeleteObject(ctx, &sdk.DeleteObjectInput{Bucket: aws.String(fakeBucket), Key: aws.String("tests/" + key)})
			return err
		},
		FloorTick:       time.Second,
		ContentVersions: true,
	}
	if _, measured := t.(*testing.B); measured {
		h.Store = openFake(t, s.Client(), opts...)
		return h
	}
	r, err := relay.New(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	url := "http" + strings.TrimPrefix(r.URL(), "nats")
	h.Store, h.Denied = openFake(t, s3fake.Client(url), opts...), openFake(t, s3fake.Nobody(url))
	h.Cut = func() func() {
		r.Blackhole()
		return r.Heal
	}
	return h
}

// TestFakeConformance is alone, since it counts goroutines.
func TestFakeConformance(t *testing.T) {
	for name, opts := range map[string][]s3object.Option{"quoted": nil, "unquoted": {s3object.WithUnquotedETags()}} {
		if opts != nil && (testing.Short() || os.Getenv(realVariable) == "") {
			continue // the same again in the other form
		}
		t.Run(name, func(t *testing.T) {
			drivertest.Run(t, func(t testing.TB) drivertest.Harness { return fakeHarness(t, opts...) })
		})
	}
}

func TestFakeElection(t *testing.T) {
	t.Parallel()
	drivertest.RunElection(t, func(t testing.TB) drivertest.Harness { return fakeHarness(t) })
}

func BenchmarkFake(b *testing.B) {
	drivertest.Benchmark(b, func(t testing.TB) drivertest.Harness { return fakeHarness(t) })
}
