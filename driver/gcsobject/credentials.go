package gcsobject

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
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

// defaultToken reads the application default credentials, and gets a token for them.
func defaultToken(ctx context.Context) (*oauth2.Token, error) {
	c, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("no credentials are found; set GOOGLE_APPLICATION_CREDENTIALS, run \"gcloud auth "+
			"application-default login\", or give the machine or workload a service account: %w", err)
	}
	t, err := c.TokenSource.Token()
	var refusal *oauth2.RetrieveError
	if errors.As(err, &refusal) && refusal.Response != nil && refusal.Response.StatusCode/100 == 4 {
		return nil, fmt.Errorf("%w: the credentials get no access token; they may be revoked, or the clock of this machine is wrong: %w",
			driver.ErrDenied, err)
	}
	return t, err
}

const (
	// early is how long before its end a token is replaced. The metadata server of a machine gives
	// another one in the last five minutes.
	early = 4 * time.Minute
	// replaceWithin is how long that may delay a request while the old token is still valid.
	replaceWithin = time.Second
	// pause is the time between two attempts while the old token is still valid.
	pause = 15 * time.Second
)

// tokens holds the present access token. A nil *tokens adds nothing to requests.
type tokens struct {
	find   func(context.Context) (*oauth2.Token, error)
	report func(error)
	calls  abandon.Calls
	turn   chan struct{} // holds a value while a token is sought

	mu       sync.Mutex
	last     *oauth2.Token
	proved   bool      // the server has accepted it
	again    time.Time // when it may be replaced
	reported string
}

func newTokens(find func(context.Context) (*oauth2.Token, error), report func(error)) *tokens {
	if report == nil {
		report = func(error) {}
	}
	return &tokens{find: find, report: report, turn: make(chan struct{}, 1)}
}

// sign adds a token to the request, and returns it.
func (t *tokens) sign(ctx context.Context, r *http.Request) (*oauth2.Token, error) {
	if t == nil {
		return nil, nil
	}
	token, err := t.get(ctx)
	if err != nil {
		return nil, fmt.Errorf("nothing was sent: %w", err)
	}
	token.SetAuthHeader(r)
	return token, nil
}

// get returns a valid token. It replaces a token that ends soon, but does not wait long for that.
func (t *tokens) get(ctx context.Context) (*oauth2.Token, error) {
	last, replace := t.present()
	if last != nil && !replace {
		return last, nil
	}
	within := ctx
	if last != nil {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, replaceWithin)
		defer cancel()
	}
	now, err := t.renew(within)
	switch {
	case err == nil:
		return now, nil
	case last == nil:
		return nil, cmp.Or(context.Cause(ctx), err)
	}
	t.postpone(err)
	return last, nil
}

// present returns the token while it is valid, and whether it is to be replaced now.
func (t *tokens) present() (last *oauth2.Token, replace bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.last.Valid() {
		return nil, true
	}
	ends := t.last.Expiry
	return t.last, !ends.IsZero() && time.Until(ends) < early && time.Now().After(t.again)
}

// renew gets a token, one call at a time. A token that comes too late for its caller is for the
// next one.
func (t *tokens) renew(ctx context.Context) (*oauth2.Token, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-t.turn }()
	if last, replace := t.present(); last != nil && !replace { // another call has got it
		return last, nil
	}
	find := func() (*oauth2.Token, error) { return t.find(context.WithoutCancel(ctx)) }
	now, err := abandon.Run(ctx, &t.calls, find, t.keep)
	if err == nil {
		t.keep(now)
	}
	return now, err
}

func (t *tokens) keep(now *oauth2.Token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.proved, t.reported, t.again = now, false, "", time.Now().Add(pause)
}

func (t *tokens) postpone(err error) {
	t.mu.Lock()
	known := t.reported == err.Error()
	t.reported, t.again = err.Error(), time.Now().Add(pause)
	t.mu.Unlock()
	if !known {
		t.report(err)
	}
}

// accepted notes that the server takes this token.
func (t *tokens) accepted(token *oauth2.Token) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proved = t.proved || t.last == token
}

// refused drops a token that the server refused. If the server took it before, it has ended early,
// and the next request gets another one.
func (t *tokens) refused(token *oauth2.Token, err error) error {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		proved := t.proved
		if t.last == token {
			t.last, t.proved = nil, false
		}
		if proved {
			return fmt.Errorf("the access token has ended early; the next request gets another one: %w", err)
		}
	}
	return fmt.Errorf("%w: the server takes no such credentials: %w", driver.ErrDenied, err)
}
