package k8sd

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/k8slease"
	"github.com/tenure-go/tenure/test/internal/rig"
)

// kind is how programs run a server.
func kind(p Program) rig.Kind {
	title := "a stand-in for the API server"
	if p == APIServer {
		title = "the library k8s.io/apiserver over etcd"
	}
	return rig.Kind{
		Title: title + " over loopback and a relay for each candidate",
		URL:   func(string) string { return "k8s:" + Namespace + "/" },
		Env: func(address string) []string {
			file, err := shared.kubeconfig(address)
			if err != nil {
				panic(err) // the directory for temporary files is not writable
			}
			return []string{"KUBECONFIG=" + file}
		},
		Start: func(_ context.Context, dir string) (rig.Running, error) {
			s, err := p.Start(dir)
			if err == nil {
				shared.use()
			}
			return running{s}, err
		},
		Connect: connect,
	}
}

type running struct{ *Server }

// Addresses returns the address of the server.
func (r running) Addresses() []string { return []string{r.Address()} }

// Create makes a namespace.
func (r running) Create(_ context.Context, namespace string) error { return r.AddNamespace(namespace) }

// End kills the server, and removes the files for its clients.
func (r running) End() {
	r.Server.End()
	shared.disuse()
}

// connect opens stores over one client.
func connect(c rig.Connector) (rig.Opener, error) {
	config := &rest.Config{
		Host: "https://" + c.Address(), BearerToken: Admin, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if c.Count != nil {
					c.Count(r.Method)
				}
				return next.RoundTrip(r)
			})
		},
	}
	return func(_ context.Context, namespace string) (driver.Store, error) {
		return k8slease.New(config, namespace)
	}, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
