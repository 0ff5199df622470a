package s3object

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

func TestCheckRights(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		denied bool
		why    string
	}{
		"no such upload": {func(w http.ResponseWriter) { refuse(w, 404, "NoSuchUpload") }, false, "the server has looked for the upload"},
		"access denied":  {func(w http.ResponseWriter) { refuse(w, 403, "AccessDenied") }, true, "the right is missing"},
		"by a proxy":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, false, "a proxy that lets no POST pass says nothing of PUT"},
		"unknown":        {func(w http.ResponseWriter) { refuse(w, 501, "NotImplemented") }, false, "this server cannot answer"},
		"done":           {func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }, false, "nothing was refused"},
		"a condition":    {func(w http.ResponseWriter) { refuse(w, 412, "PreconditionFailed") }, false, "the condition came first"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStub(t, func(s *stub) {
				s.match = func(string, string) bool { return true } // it ignores conditions
				s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method == http.MethodPost {
						c.answer(w)
						return true
					}
					return false
				}
			})
			store := s.open(t)
			s.set("cell", "precious")
			err := store.CheckRights(t.Context(), "cell")
			if errors.Is(err, driver.ErrDenied) != c.denied || !c.denied && err != nil {
				t.Errorf("got %v: %s", err, c.why)
			}
			if c.denied && !strings.Contains(err.Error(), "s3:PutObject") {
				t.Errorf("got %v, which does not say what to grant", err)
			}
			if s.value("cell") != "precious" || s.count("PUT") > 0 || s.count("POST") != 1 {
				t.Errorf("requests: %q", s.requests)
			}
		})
	}
}

// The election reports the missing right while another candidate leads.
func TestStandbyWithoutTheRightToWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startStub(t, func(s *stub) {
			s.intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet || r.URL.Query().Has("versioning") {
					return false
				}
				refuse(w, 403, "AccessDenied")
				return true
			}
		})
		s.standbyReports(t, driver.ErrDenied)
	})
}

// standbyReports lets a candidate follow another one, and requires that it reports this error.
func (s *stub) standbyReports(t *testing.T, want error) {
	t.Helper()
	s.set("billing", `{"leaderID":"a","incarnation":"i","term":7,"leaseMillis":20000,"seq":1,"nonce":"n"}`)
	e := candidate(t, s.openFirst(t), "b")
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx, func(context.Context, *tenure.Term) error { return nil }) }()
	status, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Health() != nil })
	if err != nil || !errors.Is(status.WriteErr, want) {
		t.Errorf("health: %v (%v)", status.Health(), err)
	}
	stop()
	<-done
}
