//go:build integration

package s3

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/s3object"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// mistake is a common mistake, and the text that the error must contain.
type mistake struct {
	name   string
	bucket string // another bucket
	change func(*s3.Options)
	denied bool
	says   []string
}

func mistakes() []mistake {
	return []mistake{
		{name: "missing bucket", bucket: "no-such-bucket", says: []string{"no bucket no-such-bucket", "aws s3 mb"}},
		{name: "unknown access key", change: s3d.As("nobody", s3d.Secret), denied: true,
			says: []string{"access key", "AWS_ACCESS_KEY_ID"}},
		{name: "wrong secret", change: s3d.As(s3d.Access, "wrong"), denied: true,
			says: []string{"signature", "AWS_SECRET_ACCESS_KEY"}},
		{name: "no credentials", change: func(o *s3.Options) { o.Credentials = aws.AnonymousCredentials{} }, denied: true,
			says: []string{"s3:"}},
		{name: "wrong region", change: func(o *s3.Options) { o.Region = "ap-elsewhere-9" },
			says: []string{"region", "ap-elsewhere-9", "set"}},
		{name: "clock in the past", change: s3d.Skewed(-time.Hour), says: []string{"clock", "set it"}},
		{name: "clock in the future", change: s3d.Skewed(time.Hour), says: []string{"clock", "set it"}},
	}
}

// TestRealMistakes: each mistake causes a clear error that names the remedy, from reads and writes.
// Nothing is overwritten.
func TestRealMistakes(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity, s3d.MinIO}, func(t *testing.T, server *s3d.Server) {
		bucket, url := server.Bucket(t), server.URLs()[0]
		right := s3d.NewStore(t, url, bucket)
		version, err := right.CompareAndSwap(wait.Context(t), "cell", "", []byte("precious"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mistakes() {
			t.Run(m.name, func(t *testing.T) {
				m.make(t, url, bucket, version)
				if e, err := right.Read(wait.Context(t), "cell"); err != nil || string(e.Value) != "precious" {
					t.Errorf("the cell holds %q now (%v)", e.Value, err)
				}
			})
		}
	})
}

func (m mistake) make(t *testing.T, url, bucket string, version driver.Version) {
	if m.bucket != "" {
		bucket = m.bucket
	}
	var change []func(*s3.Options)
	if m.change != nil {
		change = append(change, m.change)
	}
	store := s3d.NewStore(t, url, bucket, change...)
	_, err := store.Read(wait.Context(t), "cell")
	m.judge(t, "read", err)
	_, err = store.CompareAndSwap(wait.Context(t), "cell", version, []byte("swapped"))
	m.judge(t, "swap", err)
	_, err = store.CompareAndSwap(wait.Context(t), "cell", "", []byte("created"))
	m.judge(t, "create", err)
	_, err = store.Inspect(wait.Context(t), 15*time.Second)
	m.judge(t, "inspect", err)
}

func (m mistake) judge(t *testing.T, call string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s succeeds", call)
		return
	}
	t.Logf("%s: %v", call, err)
	if errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) != m.denied {
		t.Errorf("%s: denied: %v, conflict: %v; want %v and false", call, errors.Is(err, driver.ErrDenied),
			errors.Is(err, driver.ErrConflict), m.denied)
	}
	for _, word := range m.says {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: the error does not say %q", call, word)
		}
	}
}

// TestRealForeignObject: an object that is not a record belongs to another program. Candidates
// report this and do not overwrite it.
func TestRealForeignObject(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity, s3d.MinIO}, func(t *testing.T, server *s3d.Server) {
		bucket, url := server.Bucket(t), server.URLs()[0]
		photo := strings.Repeat("not a record ", 1000)
		_, err := s3d.Client(url).PutObject(wait.Context(t), &s3.PutObjectInput{
			Bucket: &bucket, Key: aws.String("billing"), Body: strings.NewReader(photo),
		})
		if err != nil {
			t.Fatal(err)
		}
		store := s3d.NewStore(t, url, bucket)
		before, err := store.Read(wait.Context(t), "billing")
		if err != nil {
			t.Fatal(err)
		}
		campaignInVain(t, store, "billing")
		if after, err := store.Read(wait.Context(t), "billing"); err != nil || after.Version != before.Version {
			t.Errorf("the object was overwritten (%v)", err)
		}
	})
}

// readStore signals the start of a read to its listeners.
type readStore struct {
	*s3object.Store
	begun chan time.Time
}

func (s readStore) Read(ctx context.Context, key string) (driver.Entry, error) {
	select {
	case s.begun <- time.Now():
	default:
	}
	return s.Store.Read(ctx, key)
}

// campaignInVain campaigns after the alarm until two leases later. In that time the candidate would
// have replaced an absent or dead leader. It must still read then.
func campaignInVain(t *testing.T, store *s3object.Store, name string) {
	t.Helper()
	const lease = 2 * time.Second
	reads, alarm := readStore{store, make(chan time.Time)}, make(chan time.Time, 1)
	e, err := tenure.New(reads, name, tenure.Config{ID: "a", Lease: lease, OnEvent: func(ev tenure.Event) {
		if errors.Is(ev.Cause, tenure.ErrForeign) {
			select {
			case alarm <- time.Now():
			default:
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(wait.Context(t))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = e.Run(ctx, func(context.Context, *tenure.Term) error {
			t.Error("elected")
			return nil
		})
	}()
	await := func(c <-chan time.Time, what string) time.Time {
		select {
		case at := <-c:
			return at
		case <-ctx.Done():
			t.Errorf("no %s: %v", what, context.Cause(ctx))
			return time.Now()
		}
	}
	began := await(alarm, "alarm about bytes that are no record")
	// The second read shows that nothing followed from the first.
	for late := 0; late < 2 && ctx.Err() == nil; {
		if await(reads.begun, "read").Sub(began) > 2*lease {
			late++
		}
	}
	cancel()
	<-ended
}

// TestRealEnvironment: the variables of AWS's own tools are enough.
func TestRealEnvironment(t *testing.T) {
	eachReal(t, []s3d.Kind{s3d.Versity}, func(t *testing.T, server *s3d.Server) {
		for name, value := range map[string]string{
			"AWS_ENDPOINT_URL": server.URLs()[0], "AWS_REGION": s3d.Region,
			"AWS_ACCESS_KEY_ID": s3d.Access, "AWS_SECRET_ACCESS_KEY": s3d.Secret, "AWS_SESSION_TOKEN": "",
			"AWS_PROFILE": "", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		} {
			t.Setenv(name, value)
		}
		store, err := s3object.FromEnvironment(wait.Context(t), server.Bucket(t), s3object.WithPrefix("elections"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.CompareAndSwap(wait.Context(t), "cell", "", []byte("first")); err != nil {
			t.Fatal(err)
		}
		if e, err := store.Read(wait.Context(t), "cell"); err != nil || string(e.Value) != "first" {
			t.Errorf("read %q (%v)", e.Value, err)
		}
	})
}
