//go:build integration

package health

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestHTTP(t *testing.T) {
	for status, passes := range map[int]bool{200: true, 204: true, 302: false, 404: false, 500: false} {
		s := httptest.NewServer(http.RedirectHandler("/", status))
		if err := HTTP(s.URL)(t.Context()); (err == nil) != passes {
			t.Errorf("%d: %v", status, err)
		}
		s.Close()
		if HTTP(s.URL)(t.Context()) == nil {
			t.Error("a server that is gone passes")
		}
	}
}
