package k8snamespace

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver/k8slease"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]*Place{
		"k8s:": {}, "k8s:prod": {Namespace: "prod"}, "k8s:prod/": {Namespace: "prod"},
		"k8s:prod/?context=eu&kubeconfig=/etc/k": {Namespace: "prod", Context: "eu", Kubeconfig: "/etc/k"},
		"k8s:?context=eu":                        {Context: "eu"},
	} {
		if got, err := parse(raw); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	for raw, want := range map[string]string{
		"k8s://host/prod": "namespace", "k8s:Prod/": "namespace", "k8s:a/b/": "namespace", "k8s:?token=s3cret": "kubeconfig",
		"k8s:?context=": "empty", "k8s:?context=a&context=b": "twice",
	} {
		_, err := parse(raw)
		if text := fmt.Sprintf("%+v %s", err, hint(err)); err == nil || !strings.Contains(text, want) || strings.Contains(text, "s3cret") {
			t.Errorf("%s: %v", raw, text)
		}
	}
}

func hint(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Hint
	}
	return ""
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u, namespace: mine}}
- {name: broken, context: {cluster: missing, user: u}}
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: u, user: {token: t}}
`

func TestConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	config, namespace, err := (&Place{Kubeconfig: file}).load()
	if err != nil || namespace != "mine" || config.Host != "https://127.0.0.1:1" || config.BearerToken != "t" {
		t.Errorf("got %v, %s, %v", config, namespace, err)
	}
	if _, namespace, _ := (&Place{Kubeconfig: file, Namespace: "other"}).load(); namespace != "other" {
		t.Errorf("the namespace of the URL is not used, but %s", namespace)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for what, c := range map[string]struct {
		place Place
		hint  string
	}{
		"wrong context": {Place{Kubeconfig: file, Context: "wrong"}, "get-contexts"},
		"no such file":  {Place{Kubeconfig: "/no/such"}, "?kubeconfig=FILE"},
		// client-go takes this for no configuration at all
		"no cluster":     {Place{Kubeconfig: file, Context: "broken"}, "kubectl config view"},
		"nothing at all": {Place{}, "KUBECONFIG"},
	} {
		_, err := c.place.Open(context.Background(), kind.Options{})
		if err == nil || !strings.Contains(hint(err), c.hint) {
			t.Errorf("%s: %v, hint %q", what, err, hint(err))
		}
	}
}

func TestExplain(t *testing.T) {
	for what, c := range map[string]struct {
		err    error
		hint   string
		passes bool
	}{
		"expired token":      {&k8slease.StatusError{Code: 401, Reason: "Unauthorized"}, "auth whoami", false},
		"missing right":      {&k8slease.StatusError{Code: 403, Reason: "Forbidden"}, "Role", false},
		"missing namespace":  {&k8slease.StatusError{Code: 404, Reason: "NotFound", Kind: "namespaces"}, "create namespace", false},
		"overloaded":         {&k8slease.StatusError{Code: 429, Reason: "TooManyRequests"}, "", true},
		"etcd has no leader": {&k8slease.StatusError{Code: 500, Reason: "InternalError"}, "", true},
		"unknown authority":  {x509.UnknownAuthorityError{}, "--certificate-authority", false},
		"expired server":     {x509.CertificateInvalidError{Reason: x509.Expired}, "certificate", false},
		"no server":          {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "/readyz", true},
	} {
		f := new(Place).Explain(fmt.Errorf("read: %w", c.err))
		if !strings.Contains(f.Hint, c.hint) || f.Passing != c.passes {
			t.Errorf("%s: %v, hint %q, passes %v", what, f, f.Hint, f.Passing)
		}
	}
}

func TestCommands(t *testing.T) {
	got := (&Place{Namespace: "prod"}).Commands("crawl/slots/1")
	want := kind.Commands{
		Look: "kubectl --namespace prod get lease crawl.slots.1 -o yaml", Delete: "kubectl --namespace prod delete lease crawl.slots.1",
	}
	if got != want {
		t.Errorf("got %+v", got)
	}
}
