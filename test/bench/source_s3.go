package main

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/peer"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// objectSource is one client of object storage, and with peers a server for them.
type objectSource struct {
	me     identity
	say    func(report)
	client *s3.Client

	bucket  string
	store   driver.Store // of the bucket
	address string       // where peers reach this process
}

func openObjects(me identity, say func(report)) *objectSource {
	s := &objectSource{me: me, say: say}
	transport := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}
	s.client = s3d.Client(me.URL, func(o *s3.Options) {
		o.HTTPClient = &http.Client{Transport: transport}
		o.HTTPSignerV4 = missigner{v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }), me.Wall}
	})
	say(report{What: connected, At: machine.Now()})
	return s
}

// open keeps the store of a bucket, since its peers know it by its key.
func (s *objectSource) open(c command) (driver.Store, error) {
	if s.bucket == c.Bucket {
		return s.store, nil
	}
	objects, err := s3object.New(s.client, c.Bucket)
	if err != nil {
		return nil, err
	}
	s.bucket, s.store = c.Bucket, observedObjects{objects, s}
	if s.me.Peers {
		err = s.meet()
	}
	return s.store, err
}

// meet lets the store be followed by peers, and follow them.
func (s *objectSource) meet() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p, err := peer.New(s.store, peer.Config{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err != nil {
		return err
	}
	s.store, s.address = p, l.Addr().String()
	go func() {
		if err := p.Serve(l); err != nil {
			s.say(report{What: failed, Error: err.Error()})
		}
	}()
	return nil
}

func (s *objectSource) configure(_ context.Context, _ command, _ string, cfg *tenure.Config) error {
	cfg.Address = s.address
	if s.me.Wall != 0 {
		cfg.Clock = setWrong{clock.System{}, s.me.Wall}
	}
	return nil
}

// setWrong is a clock that shows another time of day.
type setWrong struct {
	clock.Clock
	by time.Duration
}

// Now is the inner clock's, with a wrong time of day.
func (c setWrong) Now() clock.Reading {
	r := c.Clock.Now()
	r.Wall = r.Wall.Add(c.by)
	return r
}

// missigner signs with a wrong time of day as long as a server takes it. With one that is further off, the client library
// learns the server's time from the first refusal, and signs by it.
type missigner struct {
	s3.HTTPSignerV4
	by time.Duration
}

// tolerated is how wrong the time of a signature may be.
const tolerated = 15 * time.Minute

// SignHTTP is the inner signer's, at another time.
func (m missigner) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request, hash, service, region string, at time.Time,
	opts ...func(*v4.SignerOptions)) error {
	if m.by.Abs() < tolerated {
		at = at.Add(m.by)
	}
	return m.HTTPSignerV4.SignHTTP(ctx, c, r, hash, service, region, at, opts...)
}

// observedObjects is a bucket whose writes are reported, and whose reads are judged if that is wanted.
type observedObjects struct {
	*s3object.Store
	source *objectSource
}

// CompareAndSwap is the store's, between two reports.
func (o observedObjects) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return swap(ctx, o.Store, o.source.say, key, prev, value)
}

// Read is the store's. The planted mistake compares the leader's time of day with one's own.
func (o observedObjects) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := o.Store.Read(ctx, key)
	if me := o.source.me; err == nil && me.Judge {
		if c := peek(e.Value); c.LeaderID != "" && c.LeaderID != me.ID && !c.Released {
			age := time.Now().Add(me.Wall).Sub(c.LastUpdated)
			o.source.say(report{What: judged, Election: key, At: machine.Now(), Age: age})
		}
	}
	return e, err
}
