package s3d

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// ForPrograms is how programs run servers of a kind.
func ForPrograms(k Kind) rig.Kind {
	return rig.Kind{
		Title:  "object storage (" + string(k) + ") over loopback and a relay for each candidate",
		Polled: true,
		URL:    func(string) string { return "s3://elections" },
		Env: func(address string) []string {
			return []string{
				"AWS_ENDPOINT_URL=http://" + address, "AWS_REGION=" + Region,
				"AWS_ACCESS_KEY_ID=" + Access, "AWS_SECRET_ACCESS_KEY=" + Secret,
			}
		},
		Start: func(ctx context.Context, dir string) (rig.Running, error) {
			s, err := Open(ctx, k, dir, 0)
			if err != nil {
				return nil, err
			}
			return running{at{s, s.URLs()[0]}}, nil
		},
		Connect: connect,
	}
}

type running struct{ at }

func (r running) Addresses() []string { return []string{strings.TrimPrefix(r.url, "http://")} }
func (r running) End()                { r.Server.Stop() }

func (r running) Create(ctx context.Context, bucket string) error { return r.CreateBucket(ctx, bucket) }

// connect makes one client.
func connect(c rig.Connector) (rig.Opener, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, IdleConnTimeout: time.Minute}
	counting := roundTripper(func(r *http.Request) (*http.Response, error) {
		c.Count(r.Method)
		return transport.RoundTrip(r)
	})
	skew := c.Wall
	// S3 refuses such a time, and then the client library uses the server's time.
	if skew.Abs() >= 15*time.Minute {
		skew = 0
	}
	client := Client("http://"+c.Address(), Skewed(skew), func(s *s3.Options) { s.HTTPClient = &http.Client{Transport: counting} })
	return func(_ context.Context, bucket string) (driver.Store, error) { return s3object.New(client, bucket) }, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
