package s3object

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
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
