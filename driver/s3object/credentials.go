package s3object

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/reread"
)

// LoadConfig is config.LoadDefaultConfig for clients that outlive their credentials. That function
// reads the files of AWS's tools once; a client with this configuration reads them again when one
// of them has changed, and after each request that the server refused (400, 401 or 403). The files
// are those of AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE, or in ~/.aws, and that of
// AWS_CA_BUNDLE. A change of the files replaces the credentials and the authorities; the region and
// all other settings stay.
//
// While no credentials are found, the last ones stay in use. If report is not nil, it is called
// with the reason, once for each.
func LoadConfig(
	ctx context.Context, report func(error), opts ...func(*config.LoadOptions) error,
) (aws.Config, error) {
	first, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return first, err
	}
	if first.HTTPClient == nil { // services make one themselves then
		first.HTTPClient = awshttp.NewBuildableClient()
	}
	l := &liveConfig{last: first, mark: mark()}
	l.source = reread.New(first, func(ctx context.Context) (aws.Config, error) { return reload(ctx, first, opts) }, report)
	live := first.Copy()
	live.HTTPClient = l
	if unsigned := aws.IsCredentialsProvider(first.Credentials, (*aws.AnonymousCredentials)(nil)); !unsigned {
		live.Credentials = l
	}
	return live, nil
}

// replaceWithin is how long finding new credentials may delay a request while the old ones still
// work.
const replaceWithin = time.Second

// caBundle is the variable that names a file with authorities.
const caBundle = "AWS_CA_BUNDLE"

// reload reads the files, and makes sure that there are credentials. A client for the same
// authorities stays, with its connections.
func reload(ctx context.Context, first aws.Config, opts []func(*config.LoadOptions) error) (aws.Config, error) {
	now, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return now, err
	}
	if os.Getenv(caBundle) == "" {
		now.HTTPClient = first.HTTPClient
	}
	if _, err = now.Credentials.Retrieve(ctx); err != nil {
		err = fmt.Errorf("no credentials are found: %w", err)
	}
	return now, err
}

// mark returns a text that differs after a change of a file.
func mark() string {
	var text string
	for _, f := range [][2]string{
		{"AWS_SHARED_CREDENTIALS_FILE", config.DefaultSharedCredentialsFilename()},
		{"AWS_CONFIG_FILE", config.DefaultSharedConfigFilename()},
		{caBundle, ""},
	} {
		name := os.Getenv(f[0])
		if name == "" {
			name = f[1]
		}
		if at, err := os.Stat(name); err == nil {
			text += fmt.Sprint(at.ModTime().UnixNano(), at.Size())
		}
		text += ";"
	}
	return text
}

// liveConfig is a configuration that follows the files. It is the provider of credentials and the
// client of HTTP.
type liveConfig struct {
	source *reread.Source[aws.Config]

	mu      sync.Mutex
	last    aws.Config
	mark    string // of the files, when they were last read
	refused bool   // the server refused a request since
}

// current returns the configuration, after it has read the files again if there is a reason.
func (l *liveConfig) current(ctx context.Context) aws.Config {
	mark := mark()
	l.mu.Lock()
	last, changed, refused := l.last, l.mark != mark, l.refused
	l.mark, l.refused = mark, false
	l.mu.Unlock()
	if !changed && !refused {
		return last
	}
	if !refused {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, replaceWithin)
		defer cancel()
	}
	now := l.source.Get(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mark == mark { // the files have not changed again in the meantime
		l.last = now
	}
	return now
}

// Retrieve returns the credentials for the next request.
func (l *liveConfig) Retrieve(ctx context.Context) (aws.Credentials, error) {
	return l.current(ctx).Credentials.Retrieve(ctx)
}

// Do sends a request.
func (l *liveConfig) Do(r *http.Request) (*http.Response, error) {
	answer, err := l.current(r.Context()).HTTPClient.Do(r)
	if err != nil {
		return nil, err
	}
	switch answer.StatusCode {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		l.mu.Lock()
		l.refused = true
		l.mu.Unlock()
	}
	return answer, nil
}

var errNoRegion = errors.New("no region is known, and requests are signed for one: set AWS_REGION, give region in the " +
	"profile, or pass the region when making the store or its client (us-east-1 does for most servers other than S3)")

// FromEnvironment returns the elections in a bucket, over a client of its own that is configured
// like AWS's tools: by environment variables (AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID,
// AWS_ENDPOINT_URL_S3 and so on), by the files in ~/.aws, and by the roles of containers and
// machines. Replaced credentials need no restart: see LoadConfig. If the configuration names an
// endpoint, the bucket is addressed by path. For other settings make a client and pass it to New.
//
// FromEnvironment sends no request to S3: the first call looks for credentials. It returns an error
// if the configuration cannot be read, no region is known, or the endpoint, the bucket's name or
// the prefix is not valid.
func FromEnvironment(ctx context.Context, bucket string, opts ...Option) (*Store, error) {
	set := settle(opts)
	s, err := fromEnvironment(ctx, bucket, set)
	if err != nil {
		return nil, fmt.Errorf("s3object: %w", err)
	}
	return s, nil
}

func fromEnvironment(ctx context.Context, bucket string, set settings) (*Store, error) {
	if err := set.checkEndpoint(); err != nil {
		return nil, err
	}
	var load []func(*config.LoadOptions) error
	if set.region != "" {
		load = append(load, config.WithRegion(set.region))
	}
	var logger logging.Logger
	report := func(err error) {
		logger.Logf(logging.Warn, "s3object: credentials cannot be read again, the last ones stay in use: %v", err)
	}
	cfg, err := LoadConfig(ctx, report, load...)
	logger = cfg.Logger
	if err != nil {
		return nil, fmt.Errorf("the configuration of the AWS SDK: %w", err)
	}
	return newStore(s3.NewFromConfig(cfg, set.address), bucket, set)
}

func (set settings) checkEndpoint() error {
	if set.endpoint == "" {
		return nil
	}
	u, err := url.Parse(set.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("endpoint %q: want a URL such as https://s3.example.com", set.endpoint)
	}
	return nil
}

// address runs after the environment's endpoint was looked up.
func (set settings) address(o *s3.Options) {
	if set.endpoint != "" {
		o.BaseEndpoint = &set.endpoint
	}
	o.UsePathStyle = o.UsePathStyle || set.pathStyle || o.BaseEndpoint != nil
}

// googleDomain has all addresses of Google Cloud Storage: storage.googleapis.com, that of a bucket
// below it, and those for regions and private networks.
const googleDomain = ".googleapis.com"

// checkService refuses a service that is known to be unfit by its address. Another address of the
// same service, such as that of a proxy, passes: the check before the first write remains.
func checkService(endpoint *string) error {
	u, err := url.Parse(aws.ToString(endpoint))
	if err != nil {
		return nil // the first request reports it
	}
	host := "." + strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if !strings.HasSuffix(host, googleDomain) {
		return nil
	}
	return fmt.Errorf("endpoint %s: %w: Google Cloud Storage documents If-Match and If-None-Match for reads only, "+
		"so two candidates could lead at once; hold the election there with package gcsobject (--store gs://BUCKET), "+
		"which uses another interface", u.Redacted(), driver.ErrUnfit)
}
