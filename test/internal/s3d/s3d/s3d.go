// Package s3d runs servers that speak S3, as processes of their own. Tests can pause them, kill
// them, and start them again on their files.
//
// The servers are programs of other projects. If one is missing, the package manager of its
// language installs a fixed version into TENURE_TOOLS, or else into a directory of the user's
// cache. The servers listen only on 127.0.0.1 and end with this process. To run one by hand: `go
// run ./test/internal/serve versity`.
package s3d

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/test/internal/process"
)

// Server is one server, or several that work together, in running processes.
type Server struct {
	Kind Kind

	processes []*server
	stub      *stub
}

// Open installs the programs of a kind, which takes minutes the first time, and starts them over a
// directory. The path must be absolute. Port is the port of the first process that clients talk to;
// 0 takes a free one. Open returns when the servers answer. An error names a missing program, or
// has the end of a server's log. Stop ends the servers.
func Open(ctx context.Context, k Kind, dir string, port int) (*Server, error) {
	s := &Server{Kind: k}
	if k == Stub {
		var err error
		s.stub, err = newStub(port)
		return s, err
	}
	for _, g := range k.layout() {
		if err := s.add(ctx, g, dir, &port); err != nil {
			s.Stop()
			return nil, err
		}
	}
	if err := s.answers(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// add starts one more process. Wish is the port of the first process that clients talk to.
func (s *Server) add(ctx context.Context, g program, dir string, wish *int) error {
	p := place{dir: dir}
	if n := len(s.processes); n > 0 {
		p.behind = s.processes[n-1].url()
	}
	if !g.hidden {
		p.port, *wish = *wish, 0
	}
	if p.port > 0 {
		return s.run(ctx, g, p)
	}
	var err error
	for range 3 { // another process may take the port before this one does
		var free []int
		if free, err = ports.Free(1); err != nil {
			return err
		}
		p.port = free[0]
		if err = s.run(ctx, g, p); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// run starts a process in its place.
func (s *Server) run(ctx context.Context, g program, p place) error {
	p.address = ports.Address(p.port)
	if err := os.MkdirAll(p.data(), 0o700); err != nil {
		return err
	}
	one, err := newServer(ctx, g, p)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	if err := one.listens(ctx); err != nil {
		return errors.Join(err, one.Kill())
	}
	s.processes = append(s.processes, one)
	return nil
}

// URLs returns the URLs for clients: one, or one for each process of Versity2.
func (s *Server) URLs() []string {
	if s.stub != nil {
		return []string{s.stub.url()}
	}
	var all []string
	for _, p := range s.front() {
		all = append(all, p.url())
	}
	return all
}

// front returns the processes that clients talk to.
func (s *Server) front() []*server {
	var all []*server
	for _, p := range s.processes {
		if !p.program.hidden {
			all = append(all, p)
		}
	}
	return all
}

// Stop ends all servers. Their files stay in the directory.
func (s *Server) Stop() {
	for _, p := range s.processes {
		_ = p.Kill()
	}
	if s.stub != nil {
		s.stub.close()
	}
}

// with calls do for the process at a URL. The stub has no process.
func (s *Server) with(url string, do func(*server) error) error {
	for _, p := range s.front() {
		if p.url() == url {
			return do(p)
		}
	}
	return fmt.Errorf("no process of %s is at %s", s.Kind, url)
}

// installPatience is the time limit for fetching and compiling the tools of one kind.
const installPatience = 20 * time.Minute

// Start runs servers of a kind for the length of a test, in a directory of its own. The test fails
// if a server cannot be installed or started.
func Start(t testing.TB, k Kind) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), installPatience)
	defer cancel()
	s, err := Open(ctx, k, t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Bucket creates a new bucket for a test.
func (s *Server) Bucket(t testing.TB) string {
	t.Helper()
	name := "b" + strings.ToLower(rand.Text()[:12])
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	if err := s.CreateBucket(ctx, name); err != nil {
		t.Fatalf("create bucket on %s: %v", s.Kind, err)
	}
	return name
}

// server is one process of a Server, which can be started again on its files and port.
type server struct {
	process.Process
	program program
	place   place
}

func newServer(ctx context.Context, g program, p place) (*server, error) {
	command, err := g.tool.ready(ctx)
	if err != nil {
		return nil, err
	}
	if g.prepare != nil {
		if err := g.prepare(p); err != nil {
			return nil, err
		}
	}
	s := &server{program: g, place: p}
	s.Name = g.tool.name + " at " + p.address
	command = append(command, g.args(p)...)
	s.Command, s.Env, s.Dir = command, g.environ(p), p.dir
	s.Log = filepath.Join(p.dir, fmt.Sprintf("%s-%d.log", g.tool.name, p.port))
	return s, nil
}

func (s *server) url() string { return "http://" + s.place.address }

// listens starts the process and waits until it listens.
func (s *server) listens(ctx context.Context) error {
	if err := s.Begin(); err != nil {
		return err
	}
	return s.Await(ctx, func(context.Context) error {
		c, err := net.Dial("tcp", s.place.address)
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// Client returns a client of one of the URLs, or of a relay to it, with all rights and no retries.
func Client(url string, change ...func(*s3.Options)) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(url), UsePathStyle: true, Region: Region,
		Credentials: credentials.NewStaticCredentialsProvider(Access, Secret, ""),
		Retryer:     aws.NopRetryer{},

		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}, change...)
}

// As gives a client other credentials.
func As(access, secret string) func(*s3.Options) {
	return func(o *s3.Options) { o.Credentials = credentials.NewStaticCredentialsProvider(access, secret, "") }
}

// CreateBucket creates a bucket.
func (s *Server) CreateBucket(ctx context.Context, name string) error {
	_, err := Client(s.URLs()[0]).CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name})
	return err
}

func (s *Server) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	for _, p := range s.front() {
		if err := p.answers(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answers waits until the process answers requests that need its data. Some servers listen long
// before they have read it, and MinIO finds its own user before it can say that another one is
// unknown.
func (s *server) answers(ctx context.Context) error {
	known, unknown := Client(s.url()), Client(s.url(), As("nobody", Secret))
	return s.Await(ctx, func(ctx context.Context) error {
		if _, err := known.ListBuckets(ctx, &s3.ListBucketsInput{}); err != nil {
			return err
		}
		_, err := unknown.ListBuckets(ctx, &s3.ListBucketsInput{})
		if decided(err) {
			return nil
		}
		return err
	})
}

// decided reports whether the server has answered, other than by an error of its own.
func decided(err error) bool {
	var answer interface{ HTTPStatusCode() int }
	return err == nil || errors.As(err, &answer) && answer.HTTPStatusCode() < http.StatusInternalServerError
}

// Skewed makes a client sign with a wrong time of day.
func Skewed(by time.Duration) func(*s3.Options) {
	// S3 requires this.
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	return func(o *s3.Options) { o.HTTPSignerV4 = skewed{signer, by} }
}

type skewed struct {
	s3.HTTPSignerV4
	by time.Duration
}

// SignHTTP signs with the wrong time.
func (s skewed) SignHTTP(ctx context.Context, c aws.Credentials, r *http.Request,
	hash, service, region string, at time.Time, opts ...func(*v4.SignerOptions)) error {
	return s.HTTPSignerV4.SignHTTP(ctx, c, r, hash, service, region, at.Add(s.by), opts...)
}

// The credentials of all servers.
const (
	// Access and Secret belong to a user with all rights.
	Access = "tenure"
	Secret = "tenure-secret"
	// Stranger and StrangerSecret belong to a user of versitygw without rights to other users'
	// buckets.
	Stranger       = "stranger"
	StrangerSecret = "stranger-secret"
	// Region is the region of all servers.
	Region = "eu-test-1"

	azureKey = "dGVudXJlLXNlY3JldA==" // base64, as Azure's protocol requires
)

// writeUsers adds the user Stranger to the file of versitygw.
func writeUsers(p place) error {
	type account struct {
		Access string `json:"access"`
		Secret string `json:"secret"`
		Role   string `json:"role"`
	}
	all := map[string]map[string]account{"accessAccounts": {Stranger: {Stranger, StrangerSecret, "user"}}}
	encoded, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.users(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.users(), "users.json"), encoded, 0o600)
}

// Rekey gives the user Stranger of versitygw another secret, and the rights of an administrator.
func (s *Server) Rekey(ctx context.Context, secret string) error {
	body := "<MutableProps><Secret>" + secret + "</Secret><Role>admin</Role></MutableProps>"
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.URLs()[0]+"/update-user?access="+Stranger, strings.NewReader(body))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Content-Sha256", hash)
	admin := aws.Credentials{AccessKeyID: Access, SecretAccessKey: Secret}
	if err := v4.NewSigner().SignHTTP(ctx, admin, r, hash, "s3", Region, time.Now()); err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", answer.Status)
	}
	return nil
}
