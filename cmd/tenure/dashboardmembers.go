package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/driver/reread"
)

// memberFlags name the members whose own statements the page shows.
type memberFlags struct {
	addresses []string
	token     string
	secret    string // in the file, when it was first read
}

func (m *memberFlags) define(f *pflag.FlagSet) {
	f.StringArrayVar(&m.addresses, "member", nil, "URL of the metrics of a member, as tenure run --metrics serves them; may be given more than once")
	f.StringVar(&m.token, "member-token-file", "", "file with the token that the members ask for")
}

// settle checks the flags, and completes the addresses.
func (m *memberFlags) settle(named func(flag string) string, storeCount int) error {
	for i, a := range m.addresses {
		u, err := url.Parse(a)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			return fault.OfValue(fault.New("give a URL such as http://node-1:9464, and a token with --member-token-file",
				"%s %s: is not the URL of a member", named("member"), fault.Quote(a)))
		}
		m.addresses[i] = u.Scheme + "://" + u.Host + "/member"
	}
	switch {
	case len(m.addresses) > 0 && storeCount > 1:
		return fault.OfValue(fault.New("run one dashboard for each store, since members name their elections and not the store",
			"%s needs a single --store", named("member")))
	case m.token != "" && len(m.addresses) == 0:
		return fault.OfUsage(errors.New(named("member-token-file") + " needs --member"))
	case m.token != "":
		var err error
		if m.secret, err = web.Secret(m.token); err != nil {
			return fault.OfValue(fault.New("put the token into the file, alone on one line", "%s %s: %w", named("member-token-file"), m.token, err))
		}
	}
	return nil
}

// client sends the token. It follows no redirect, which could lead the token elsewhere.
func (m *memberFlags) client() *http.Client {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if m.token == "" {
		return &http.Client{CheckRedirect: noRedirect}
	}
	read := func(context.Context) (string, error) { return web.Secret(m.token) }
	return &http.Client{CheckRedirect: noRedirect, Transport: bearer{reread.New(m.secret, read, nil)}}
}

// bearer sends the token that the file has at each request, as it may be renewed.
type bearer struct{ secret *reread.Source[string] }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token := b.secret.Get(r.Context())
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return http.DefaultTransport.RoundTrip(r)
}
