// Package k8snamespace describes stores in namespaces of Kubernetes.
package k8snamespace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/k8slease"
)

const example = "k8s:NAMESPACE/"

// Place is a namespace of a cluster.
type Place struct {
	// Namespace is empty for that of the Pod or of the context.
	Namespace string `json:"namespace,omitempty"`
	// Context is one of the kubeconfig; empty for its current one.
	Context string `json:"context,omitempty"`
	// Kubeconfig is a file; empty for those of KUBECONFIG, ~/.kube/config, or in a Pod its service
	// account.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// Kind describes this kind of store.
func Kind() *kind.Kind {
	return &kind.Kind{
		Key:       "kubernetes",
		Container: "namespace",
		Schemes:   []kind.Scheme{{Name: "k8s", Form: "k8s:[NAMESPACE/]", Opaque: true}},
		About: `Kubernetes, --store k8s:[NAMESPACE/][?...]: a Lease in the namespace holds the record. In a Pod the
default is its own namespace and service account, elsewhere those of the kubeconfig. It takes these
parameters`,
		Parameters: []kind.Parameter{
			{Name: "context", Value: "NAME", Meaning: "the context of the kubeconfig; by default the current one"},
			{Name: "kubeconfig", Value: "FILE", Meaning: "the kubeconfig; by default KUBECONFIG, or else ~/.kube/config"},
		},
		TokenDigits: len("1795270861001002"), // microseconds of the API server's clock
		DemoLease:   3 * time.Second,
		Parse:       func(_, raw string) (kind.Place, error) { return parse(raw) },
		Empty:       func() kind.Place { return new(Place) },
	}
}

func isNamespace(name string) bool { return len(name) <= 63 && namespaceName.MatchString(name) }

// namespaceName leaves the length out: {0,61} would take 40 KB of memory in every process.
var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func parse(raw string) (kind.Place, error) {
	rest, query, _ := strings.Cut(strings.TrimPrefix(raw, "k8s:"), "?")
	p := &Place{Namespace: strings.TrimSuffix(rest, "/")}
	if p.Namespace != "" && !isNamespace(p.Namespace) {
		return nil, fault.New("give a namespace, such as k8s:production/, or k8s: for the own one; the server is in the kubeconfig",
			"the namespace %s is not valid", fault.Quote(p.Namespace))
	}
	q := kind.Query{
		Known: kind.Names(Kind().Parameters), Hint: "give a URL such as " + example,
		Elsewhere:    "credentials are in the kubeconfig, or in the service account of the Pod",
		IsCredential: func(key string) bool { return key == "token" || key == "password" || key == "user" },
	}
	return p, q.Each(query, func(key, value string) error {
		switch key {
		case "context":
			p.Context = value
		case "kubeconfig":
			p.Kubeconfig = value
		}
		return nil
	})
}

// String returns the URL, which holds no credentials.
func (p *Place) String() string {
	place := "k8s:"
	if p.Namespace != "" {
		place += p.Namespace + "/"
	}
	return kind.With(place, "?", [2]string{"context", p.Context}, [2]string{"kubeconfig", p.Kubeconfig})
}

// GoString is String.
func (p *Place) GoString() string { return p.String() }

// Product returns the name of the product.
func (p *Place) Product() string { return "Kubernetes" }

// Pushes reports that the store pushes changes.
func (p *Place) Pushes() bool { return true }

// Limits calls no server.
func (p *Place) Limits() (driver.Bounded, error) {
	return k8slease.New(&rest.Config{Host: "https://localhost"}, "default")
}

// load reads the configuration, and returns it with the namespace.
func (p *Place) load() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: p.Context}
	overrides.Context.Namespace = p.Namespace
	c := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := c.ClientConfig()
	if err != nil {
		return nil, "", err
	}
	namespace, _, err := c.Namespace()
	return config, namespace, err
}

// Open calls no server.
func (p *Place) Open(_ context.Context, o kind.Options) (*kind.Opened, error) {
	config, namespace, err := p.load()
	if err != nil {
		return nil, p.explainConfiguration(err)
	}
	config.UserAgent = o.Client
	store, err := k8slease.New(config, namespace)
	if err != nil {
		return nil, p.explainConfiguration(err)
	}
	return &kind.Opened{Driver: store, Close: store.Close}, nil
}

// Commands are those of kubectl.
func (p *Place) Commands(key string) kind.Commands {
	name := k8slease.Name(key)
	return kind.Commands{
		Look:   fmt.Sprintf("kubectl%s get lease %s -o yaml", p.flags(), name),
		Delete: fmt.Sprintf("kubectl%s delete lease %s", p.flags(), name),
	}
}

// flags are those of kubectl.
func (p *Place) flags() string {
	var b strings.Builder
	for _, f := range [][2]string{{"kubeconfig", p.Kubeconfig}, {"context", p.Context}, {"namespace", p.Namespace}} {
		if f[1] != "" {
			fmt.Fprintf(&b, " --%s %s", f[0], f[1])
		}
	}
	return b.String()
}

// explainConfiguration explains an error before the first request.
func (p *Place) explainConfiguration(err error) error {
	hint := "check the kubeconfig: kubectl config view"
	switch {
	case p.Context != "" && strings.Contains(err.Error(), "context") && strings.Contains(err.Error(), "does not exist"):
		hint = "name a context of the kubeconfig: kubectl config get-contexts"
	case errors.Is(err, os.ErrNotExist):
		hint = "name a file that exists with ?kubeconfig=FILE or KUBECONFIG"
	case clientcmd.IsEmptyConfig(err), errors.Is(err, rest.ErrNotInCluster):
		hint = "outside of a Pod, set KUBECONFIG or give ?kubeconfig=FILE, and check it: kubectl config view; " +
			"in a Pod, leave automountServiceAccountToken on"
	}
	f := fault.New(hint, "%w", err)
	f.Code = fault.Usage // no server was called
	return f
}
