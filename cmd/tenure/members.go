package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/web"
	"github.com/tenure-go/tenure/driver/reread"
	"github.com/tenure-go/tenure/internal/members"
)

// memberFlags name the processes that say of themselves which candidates they have.
type memberFlags struct {
	addresses []string
	token     string
	secret    string // in the file, when it was first read
}

func (m *memberFlags) define(f *pflag.FlagSet) {
	f.StringArrayVar(&m.addresses, "member", nil, "URL of the metrics of a process, as tenure run --metrics serves them, or of its dashboard.Report; "+
		"dns+http://NAME:PORT stands for one process at each address of the name; may be given more than once")
	f.StringVar(&m.token, "member-token-file", "", "file with the token that the members ask for")
}

// settle checks the flags, and completes the addresses.
func (m *memberFlags) settle(named func(flag string) string, storeCount int) error {
	for i, a := range m.addresses {
		u, err := url.Parse(a)
		if err != nil || members.Check(a) != nil || u.User != nil {
			return fault.OfValue(fault.New("give a URL such as http://node-1:9464 or dns+http://workers.prod.svc:9464, and a token with --member-token-file",
				"%s %s: is not the URL of a member", named("member"), fault.Quote(a)))
		}
		if path := strings.Trim(u.Path, "/"); path == "" || path == "metrics" {
			u.Path = "/member"
		}
		m.addresses[i] = u.String()
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

// client sends the token that the file has at each request, as it may be renewed.
func (m *memberFlags) client() *http.Client {
	if m.token == "" {
		return members.Client(nil)
	}
	read := func(context.Context) (string, error) { return web.Secret(m.token) }
	secret := reread.New(m.secret, read, nil)
	return members.Client(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret.Get(r.Context())) })
}
