package s3d

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/drivertest"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/process"
	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rotation"
)

// Sound returns the kinds of servers on which elections can be held.
func Sound() []Kind { return []Kind{Versity, Versity2, MinIO} }

// Rigs returns those of all sound servers.
func Rigs() (all []rig.Rig) {
	for _, k := range Sound() {
		all = append(all, Rig(k))
	}
	return all
}

// writers is the number of clients that contend for an object.
const writers = 16

// Rig is a bucket on sound servers. Leases are longer than the stalls of a busy machine, so that
// elections take minutes.
func Rig(k Kind) rig.Rig {
	r := rig.Rig{Name: string(k), Soak: k != Versity, SoakElections: true, Clients: writers, Start: func(t testing.TB, _ bool) rig.Site {
		s := Start(t, k)
		return site{s, s.Bucket(t)}
	}}
	r.SameClients = k == Versity2
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
	r := rig.Relay(t, urls[n%len(urls)])
	store := NewStore(t, "http://"+r.Address(), s.bucket)
	if s.Kind == MinIO {
		return store, r
	}
	return flatKeys{store}, r
}

// NewStore returns a store over its own client, as another process has one.
func NewStore(t testing.TB, url, bucket string, change ...func(*s3.Options)) *s3object.Store {
	t.Helper()
	change = append([]func(*s3.Options){func(o *s3.Options) { o.HTTPClient = rig.HTTPClient(t) }}, change...)
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
		FloorTick: 3 * time.Second, ContentVersions: true, Lease: 30 * time.Second, Patience: wait.Left(),
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
	return a.with(a.url, func(p *server) error {
		ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
		defer cancel()
		return errors.Join(p.listens(ctx), p.answers(ctx))
	})
}
func (a at) Stop() error   { return a.with(a.url, (*server).Stop) }
func (a at) Kill() error   { return a.with(a.url, (*server).Kill) }
func (a at) Pause() error  { return a.with(a.url, (*server).Pause) }
func (a at) Resume() error { return a.with(a.url, (*server).Resume) }

func (s site) Faults() []rig.Fault {
	return rig.Of(func(rng *rand.Rand) rig.Server {
		urls := s.URLs()
		return at{s.Server, urls[rng.IntN(len(urls))]}
	}, writers)
}

// Mistakes returns clients that ask for another bucket, or with other settings.
func (s site) Mistakes(t testing.TB) (all []rig.Client) {
	for _, m := range []struct {
		name, bucket string
		change       func(*s3.Options)
		denied       bool
		want         string
	}{
		{name: "missing bucket, named", bucket: "no-such-bucket", want: "no bucket no-such-bucket"},
		{name: "missing bucket, with the remedy", bucket: "no-such-bucket", want: "aws s3 mb"},
		{name: "unknown access key", change: As("nobody", Secret), denied: true, want: "AWS_ACCESS_KEY_ID"},
		{name: "wrong secret", change: As(Access, rig.Secret), denied: true, want: "AWS_SECRET_ACCESS_KEY"},
		{name: "no credentials", change: func(o *s3.Options) { o.Credentials = aws.AnonymousCredentials{} }, denied: true, want: "s3:"},
		{name: "wrong region", change: func(o *s3.Options) { o.Region = "ap-elsewhere-9" }, want: "ap-elsewhere-9"},
		{name: "clock in the past", change: Skewed(-time.Hour), want: "clock"},
		{name: "clock in the future", change: Skewed(time.Hour), want: "clock"},
	} {
		bucket, change := s.bucket, []func(*s3.Options){}
		if m.bucket != "" {
			bucket = m.bucket
		}
		if m.change != nil {
			change = append(change, m.change)
		}
		all = append(all, rig.Client{
			Name: m.name, Fails: rig.All + " inspect", Says: rig.Says(m.want), Denied: m.denied,
			Open: func(t testing.TB) (driver.Store, error) { return NewStore(t, s.URLs()[0], bucket, change...), nil },
		})
	}
	return all
}

// Rights returns users of versitygw with the policy of docs/object-storage.md. Without its part for
// the object of the check, a candidate writes nothing, and the error names that object.
func (s site) Rights(t testing.TB) []rig.Client {
	if s.Kind == MinIO {
		return nil
	}
	client := func(name string, change func(*rig.Client), statements ...any) rig.Client {
		c := rig.Client{Name: name, Denied: true, Open: func(t testing.TB) (driver.Store, error) {
			s.allow(t, statements)
			return NewStore(t, s.URLs()[0], s.bucket, As(Stranger, StrangerSecret)), nil
		}}
		change(&c)
		return c
	}
	type statement struct{ Effect, Principal, Action, Resource any }
	who, bucket := map[string]any{"AWS": Stranger}, "arn:aws:s3:::"+s.bucket
	list := statement{"Allow", who, "s3:ListBucket", bucket}
	objects := func(which string, actions ...string) statement {
		return statement{"Allow", who, actions, bucket + "/" + which}
	}
	return []rig.Client{
		client("candidate", func(*rig.Client) {}, list, objects("*", "s3:GetObject", "s3:PutObject")),
		client("candidate without the object of the check", func(c *rig.Client) {
			c.Fails, c.Says = "insert update rights", map[string]string{"": ".tenure-probe-conditions", "insert": "s3:PutObject"}
		}, list, objects("update*", "s3:GetObject", "s3:PutObject"), objects("insert*", "s3:GetObject", "s3:PutObject")),
		client("reader", func(c *rig.Client) {
			c.Fails, c.Says = "insert update rights", rig.Says("s3:PutObject")
		}, list, objects("*", "s3:GetObject")),
	}
}

// allow replaces the policy of the bucket.
func (s site) allow(t testing.TB, statements []any) {
	t.Helper()
	policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	rig.Must(t, err)
	_, err = Client(s.URLs()[0]).PutBucketPolicy(wait.Context(t), &s3.PutBucketPolicyInput{Bucket: &s.bucket, Policy: aws.String(string(policy))})
	rig.Must(t, err)
}

// Rotations replaces the secret key in the credentials file of AWS's tools.
func (s site) Rotations(t testing.TB) []*rotation.Play {
	if s.Kind == MinIO {
		return nil
	}
	url := s.URLs()[0]
	file, hand := rotation.File(t, "credentials", "[default]\naws_access_key_id="+Stranger+"\naws_secret_access_key=SECRET\n")
	return []*rotation.Play{{
		Name:    "credentials file",
		Args:    []string{"--store", "s3://" + s.bucket + "?endpoint=" + url + "&region=" + Region},
		Env:     []string{"AWS_SHARED_CREDENTIALS_FILE=" + file, "AWS_CONFIG_FILE=" + file + ".none"},
		Store:   NewStore(t, url, s.bucket),
		Accept:  func(secret string) { rig.Must(t, s.Rekey(wait.Context(t), secret)) },
		Hand:    hand,
		Refusal: "SignatureDoesNotMatch",
	}}
}

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
	skew := c.Wall
	// S3 refuses such a time, and then the client library uses the server's time.
	if skew.Abs() >= 15*time.Minute {
		skew = 0
	}
	client := Client("http://"+c.Address(), Skewed(skew), func(s *s3.Options) { s.HTTPClient = c.HTTPClient(rig.Method) })
	return func(_ context.Context, bucket string) (driver.Store, error) { return s3object.New(client, bucket) }, nil
}
