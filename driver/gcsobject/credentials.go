package gcsobject

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/bearer"
)

// scope is the right that access tokens carry. The roles of the account decide what it may do.
const scope = "https://www.googleapis.com/auth/devstorage.read_write"

// useEmulator follows the variable by which Google's own clients find an emulator.
func (set *settings) useEmulator() {
	host := os.Getenv("STORAGE_EMULATOR_HOST")
	if host == "" || set.endpoint != Endpoint {
		return
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	set.endpoint, set.anonymous = host, true
}

// defaultToken reads the application default credentials, and gets a token for them, over a
// transport, or http.DefaultTransport if that is nil.
func defaultToken(ctx context.Context, transport http.RoundTripper) (*bearer.Token, error) {
	// Some kinds of credentials make requests without the context.
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: transport, Timeout: bearer.SearchWithin})
	c, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("no credentials are found; set GOOGLE_APPLICATION_CREDENTIALS, run \"gcloud auth "+
			"application-default login\", or give the machine or workload a service account: %w", err)
	}
	t, err := c.TokenSource.Token()
	if err == nil {
		return &bearer.Token{Text: t.AccessToken, Ends: t.Expiry}, nil
	}
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && refusal.Response != nil && refusal.Response.StatusCode/100 == 4 {
		return nil, fmt.Errorf("%w: the credentials get no access token; they may be revoked, or the clock of this machine is wrong: %w",
			driver.ErrDenied, err)
	}
	return nil, err
}
