package s3object

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/driver"
)

// A server may refuse each If-Match for an object that does not exist, and still ignore unquoted
// ETags for one that exists. The store must not conclude that the server wants unquoted ETags, even
// if a cache shows an old state just after a refused swap.
func TestTrialUsesAnExistingObject(t *testing.T) {
	var stale atomic.Pointer[string]
	server := startStub(t, func(s *stub) {
		s.match = func(header, etag string) bool {
			if !strings.HasPrefix(header, `"`) {
				return true // not an entity tag: ignored
			}
			return strings.Trim(header, `"`) == etag
		}
		s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if v := stale.Load(); v != nil && r.Method == http.MethodGet && !r.URL.Query().Has("versioning") {
				w.Header().Set("ETag", `"`+etagOf(*v)+`"`)
				fmt.Fprint(w, *v)
				return true
			}
			return false
		}
	})
	store := server.open(t)
	old := "one"
	v1 := server.set("k", old)
	server.set("k", "two") // another client replaces it
	if _, err := store.CompareAndSwap(bounded(t, patience), "k", v1, []byte("three")); !errors.Is(err, driver.ErrConflict) {
		t.Fatal(err)
	}
	stale.Store(&old)
	server.read(t, store, "k") // a cache answers
	stale.Store(nil)
	if _, err := store.CompareAndSwap(bounded(t, patience), "k", v1, []byte("four")); err == nil {
		t.Errorf("a swap from a version that is long gone was applied: %q", server.value("k"))
	}
}
