package s3object

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/tenure-go/tenure/driver"
)

// Inspect tests the properties that elections rely on, for elections with leases up to the one
// given. It writes objects of its own, whose names begin with .tenure-probe- under the prefix, and
// removes them again. It checks whether the server refuses conditional writes when it should, one
// at a time and then in races: 32 times 16 writers create the same object, and 32 times 16 writers
// replace the same version. If two writers win in one race of five, 998 of 1,000 inspections find
// that. The worse the server, the more inspections find it. It also checks ETags, reads, the
// server's clock and the bucket's versioning.
//
// That takes some 1,130 requests, at most 64 at a time, and a few seconds; S3 bills about half a
// cent. Without the right to delete, the objects stay and a finding reports that. Without
// s3:GetBucketVersioning, Inspect does not check versioning.
//
// Errors are as for Read; without the right to write the error also wraps driver.ErrDenied. After
// an error the objects may still be there.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	return newProbe(s, lease).inspect(ctx)
}

func (p *probe) inspect(ctx context.Context) ([]driver.Finding, error) {
	err := context.Cause(ctx)
	if err == nil {
		err = p.run(ctx)
		p.clean(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("s3object: inspect bucket %s under %q: %w", p.s.bucket, p.s.prefix, err)
	}
	return p.found, nil
}

// run has an order in which each step can rely on those before it.
func (p *probe) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		p.atCreation, p.atReading, p.atSwap, p.atOldVersion, p.atRemoved, p.atRaces, p.atVersioning,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// atCreation leaves the object there, in a version.
func (p *probe) atCreation(ctx context.Context) error {
	v, refused, err := p.write(ctx, p.first, condition{"", p.bare}, "created")
	if err != nil {
		return err
	}
	if refused {
		p.find(driver.Unsafe, "If-None-Match", "the server refuses to create a missing object with If-None-Match: *, so "+
			"no election ever begins", anotherServer)
		p.creates, p.swaps = false, false
		return nil
	}
	p.version = v
	again, refused, err := p.write(ctx, p.first, condition{"", p.bare}, "CREATED")
	if err != nil || refused {
		return err
	}
	p.version, p.creates = again, false
	p.find(driver.Unsafe, "If-None-Match", overwrites, anotherServer+notVersioned)
	return nil
}

// atReading also takes the time of the server's clock.
func (p *probe) atReading(ctx context.Context) error {
	e, err := p.s.get(ctx, p.first)
	if err != nil {
		return p.s.explain(reading, err)
	}
	p.atClock(e.Floor, time.Now())
	if e.Version != p.version {
		p.late()
	}
	return nil
}

// atClock compares in the middle of the second that the server reported.
func (p *probe) atClock(floor uint64, now time.Time) {
	if floor == 0 {
		p.find(driver.Warning, "Date", "answers do not tell the server's time: where a record was deleted, a new leader may get "+
			"a lower term than an old one had", "let the Date header pass in all proxies")
		return
	}
	server := time.UnixMilli(int64(floor)).Add(500 * time.Millisecond)
	if off := now.Sub(server).Abs(); off > 5*time.Minute {
		p.find(driver.Advice, "clock", fmt.Sprintf("this machine's clock and the server's are %v apart: at 15 min signatures "+
			"are refused", off.Round(time.Second)), "set the clock that is wrong, with chronyc makestep or the like")
	}
}

func (p *probe) late() {
	if p.stale {
		return
	}
	p.stale = true
	p.find(driver.Warning, "consistency", "a read does not see a write that was acknowledged before: elections take longer, and "+
		"the loss of the server may take writes back", "use the server without a cache in between, or one with strong consistency")
}

// atSwap finds out which form the server takes, and leaves the object in a new version.
func (p *probe) atSwap(ctx context.Context) error {
	if !p.swaps {
		return nil
	}
	for _, bare := range []bool{p.bare, !p.bare} {
		v, refused, err := p.write(ctx, p.first, condition{p.version, bare}, "swapped")
		if err != nil {
			return err
		}
		if !refused {
			p.took(v, bare)
			return nil
		}
	}
	p.swaps = false
	p.find(driver.Unsafe, "If-Match", "the server refuses to replace an object with the ETag of its present version in If-Match: "+
		"no leader can renew its lease", anotherServer)
	return nil
}

func (p *probe) took(v driver.Version, bare bool) {
	if bare && !p.bare {
		p.find(driver.Advice, "If-Match", "ETags with quotes are refused, as with Ceph's gateway: each process finds "+
			"this out by itself, at the cost of a refused renewal", "pass s3object.WithUnquotedETags")
	}
	if v == p.version {
		p.find(driver.Unsafe, "ETag", "two different contents have the same ETag: a write that expects an old version may replace a newer one", anotherServer)
	}
	p.bare, p.old, p.version = bare, p.version, v
}

// atOldVersion writes from the version before the present one.
func (p *probe) atOldVersion(ctx context.Context) error {
	if !p.swaps || p.old == p.version {
		return nil
	}
	_, refused, err := p.write(ctx, p.first, condition{p.old, p.bare}, "too late")
	if err != nil || refused {
		return err
	}
	p.swaps = false
	p.find(driver.Unsafe, "If-Match", replaces, anotherServer)
	return nil
}

// atRemoved writes from a version to an object that does not exist.
func (p *probe) atRemoved(ctx context.Context) error {
	if !p.swaps {
		return nil
	}
	_, refused, err := p.write(ctx, p.name(), condition{p.version, p.bare}, "too late")
	if err != nil || refused {
		return err
	}
	p.find(driver.Warning, "If-Match", "the server creates a deleted object again although If-Match names a version: a record "+
		"that was deleted to force a new leader may come back", "do not delete records on this server")
	return nil
}

// atVersioning assumes the default pace of three renewals a lease. Without the right to read the
// setting it reports nothing.
func (p *probe) atVersioning(ctx context.Context) error {
	out, err := p.s.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &p.s.bucket}, once)
	if err != nil || out.Status != types.BucketVersioningStatusEnabled || p.lease <= 0 {
		return context.Cause(ctx)
	}
	p.find(driver.Advice, "versioning", fmt.Sprintf("each renewal stays as a noncurrent version: about %.0f a minute and %d a day "+
		"with a lease of %v", 3*time.Minute.Seconds()/p.lease.Seconds(), 3*24*time.Hour/p.lease, p.lease), fmt.Sprintf(
		`add a rule to the bucket's lifecycle (this command replaces the rules that there are): aws s3api put-bucket-lifecycle-`+
			`configuration --bucket %s --lifecycle-configuration '{"Rules":[{"ID":"elections","Status":"Enabled","Filter":`+
			`{"Prefix":"%s"},"NoncurrentVersionExpiration":{"NoncurrentDays":1}}]}'`, p.s.bucket, p.s.prefix))
	return nil
}
