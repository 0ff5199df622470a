// Package s3 tests elections on object storage: on a server within the process in virtual time, and
// with the build tag integration over sockets and on real servers.
package s3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
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

const faultyLease = 2 * time.Second

// faultPlans returns a plan with all faults, a plan of a server that refuses each quoted ETag, and
// a plan for each single fault. Nearly every third request fails.
func faultPlans() []s3fake.Plan {
	all := []s3fake.Fault{
		s3fake.Contended, s3fake.TooMany, s3fake.Broken, s3fake.BrokenLate, s3fake.LoseRequest, s3fake.LoseAnswer,
		s3fake.DelayBefore, s3fake.DelayAfter, s3fake.Refuse, s3fake.RefuseQuoted, s3fake.Missing,
	}
	plans := []s3fake.Plan{{Chances: map[s3fake.Fault]float64{}}, {Chances: map[s3fake.Fault]float64{s3fake.RefuseQuoted: 1}}}
	for _, f := range all {
		plans[0].Chances[f] = 0.3 / float64(len(all))
		plans = append(plans, s3fake.Plan{Chances: map[s3fake.Fault]float64{f: 0.3}})
	}
	for i := range plans {
		plans[i].MaxDelay = faultyLease / 4
	}
	return plans
}

// nameOf returns a short name, which is the same in each run except for the seed.
func nameOf(p s3fake.Plan, seed uint64) string {
	name := "all"
	for f := range p.Chances {
		if len(p.Chances) == 1 {
			name = f.String()
		}
	}
	return fmt.Sprintf("%s,seed=%d", name, seed)
}

// TestFaults holds an election on each of many servers, which fail in 30 % of requests. The seed
// decides which requests fail.
func TestFaults(t *testing.T) {
	var struck atomic.Int64
	plans := faultPlans()
	const terms = 4
	t.Run("plans", func(t *testing.T) { // it ends when all tests in it have ended
		for _, p := range plans {
			seed := rand.Uint64()
			t.Run(nameOf(p, seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server := startFake(t, new(pipenet.Network), seed, p)
					f := &faulty{TB: t, most: terms, server: server}
					f.play()
					struck.Add(f.struck(p))
				})
			})
		}
	})
	// At least one fault per term, and some more.
	if n := struck.Load(); n < int64(5*terms*len(plans)/4) {
		t.Errorf("%d faults: this run proves little", n)
	}
}

// faulty is an election on a server that fails.
type faulty struct {
	testing.TB
	server *s3fake.Server
	most   int // terms
	end    context.CancelFunc

	mu    sync.Mutex
	terms []*tenure.Term
}

// play runs three candidates. Each leader leaves gracefully after a while, until there were this
// many terms and one more.
func (f *faulty) play() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	f.end = cancel
	var all sync.WaitGroup
	for i := range 3 {
		store, err := s3object.New(f.server.Client(), fakeBucket)
		if err != nil {
			f.Fatal(err)
		}
		e, err := tenure.New(store, "billing", tenure.Config{
			ID: fmt.Sprintf("c%d", i), Lease: faultyLease, OnEvent: f.onEvent,
		})
		if err != nil {
			f.Fatal(err)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				err := e.Run(ctx, func(ctx context.Context, term *tenure.Term) error {
					f.begins(e.ID(), term)
					select {
					case <-time.After(faultyLease * 5 / 4): // by then it has renewed
					case <-ctx.Done():
					}
					return nil
				})
				if err != nil && ctx.Err() == nil {
					f.Errorf("Run of %s: %v", e.ID(), err)
				}
			}
		})
	}
	all.Wait()
}

func (f *faulty) struck(p s3fake.Plan) (n int64) {
	for fault := range p.Chances {
		n += int64(f.server.Struck(fault))
	}
	f.Logf("%d faults in %d reads and %d writes", n, f.server.Requests("GET"), f.server.Requests("PUT"))
	return n
}

// onEvent: a term may end because its time is over, but never because a fault is mistaken for
// another candidate's write.
func (f *faulty) onEvent(e tenure.Event) {
	switch {
	case e.Kind == tenure.EventLost && !errors.Is(e.Cause, tenure.ErrExpired):
		f.Errorf("%s lost term %d before its deadline: %v", e.ID, e.Term, e.Cause)
	case e.Kind == tenure.EventAlarm:
		f.Errorf("alarm at %s: %v", e.ID, e.Cause)
	}
}

// begins requires that each term has a higher token than all before, and that all of these are
// over, which they remain.
func (f *faulty) begins(id string, t *tenure.Term) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, former := range f.terms {
		if former.Err() == nil || former.Token() >= t.Token() {
			f.Errorf("%s is elected with token %d, and the token %d ended with %v", id, t.Token(), former.Token(), former.Err())
		}
	}
	f.terms = append(f.terms, t)
	if len(f.terms) > f.most {
		f.end()
	}
}
