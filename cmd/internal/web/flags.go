// Package web serves what the command shows to browsers and scrapers, with limits that keep them
// from disturbing an election.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
)

// Flags are those of one server. Name is the name of the first flag, which turns the server on; the
// names of the others begin with it. Address is the default of the first; if it is empty the server
// is off by default.
type Flags struct {
	Name, Address string
	// Connections is how many clients are served at once: 128 by default.
	Connections              int
	listen, cert, key, token string
}

func (w *Flags) flagCert() string  { return w.Name + "-cert" }
func (w *Flags) flagKey() string   { return w.Name + "-key" }
func (w *Flags) flagToken() string { return w.Name + "-token-file" }

// Define adds the flags to those of a command. The word what in the help names the served pages.
func (w *Flags) Define(f *pflag.FlagSet, what string) {
	f.StringVar(&w.listen, w.Name, w.Address, "[HOST:]PORT to serve "+what+" at; without a host on loopback alone; port 0: a free one")
	f.StringVar(&w.cert, w.flagCert(), "", "file with the certificate of this server, in PEM; with --"+w.flagKey()+" the server speaks TLS, and reads both files again for each connection")
	f.StringVar(&w.key, w.flagKey(), "", "file with the key of --"+w.flagCert())
	f.StringVar(&w.token, w.flagToken(), "", "file with a token that requests must show, as \"Authorization: Bearer TOKEN\" or as a password")
}

// Settings returns the settings of the flags, nil without the first. Named returns the source of a
// flag: its own name or a variable of the environment.
func (w *Flags) Settings(named func(flag string) string) (*Settings, error) {
	if w.listen == "" {
		return nil, w.alone(named)
	}
	address, err := parse(w.listen)
	if err != nil {
		return nil, wrong("give a port such as 9464, or a host and a port such as 0.0.0.0:9464", "%s %s: %w", named(w.Name), fault.Quote(w.listen), err)
	}
	s := &Settings{
		name: named(w.Name), address: address, connections: cmp.Or(w.Connections, usualConnections),
		cert: w.cert, key: w.key, token: w.token,
	}
	if (w.cert == "") != (w.key == "") {
		return nil, wrong("give both, or none for plain HTTP", "%s and %s go together", named(w.flagCert()), named(w.flagKey()))
	}
	if w.cert != "" {
		if _, err := s.pair(context.Background()); err != nil {
			return nil, wrong("give a certificate and its own key, both in PEM", "%s %s, %s %s: %w", named(w.flagCert()), w.cert, named(w.flagKey()), w.key, err)
		}
	}
	if w.token != "" {
		if _, err := s.secret(context.Background()); err != nil {
			return nil, wrong("put the token into the file, alone on one line", "%s %s: %w", named(w.flagToken()), w.token, err)
		}
	}
	return s, nil
}

func wrong(hint, format string, args ...any) error {
	return fault.OfValue(fault.New(hint, format, args...))
}

// alone returns an error if another flag is given without the first.
func (w *Flags) alone(named func(string) string) error {
	for _, f := range []struct{ flag, value string }{{w.flagCert(), w.cert}, {w.flagKey(), w.key}, {w.flagToken(), w.token}} {
		if f.value != "" {
			return fault.OfUsage(fmt.Errorf("%s needs --%s", named(f.flag), w.Name))
		}
	}
	return nil
}

// parse adds the loopback address to a port without a host.
func parse(value string) (string, error) {
	host, port := "127.0.0.1", value
	if strings.Contains(value, ":") {
		var err error
		if host, port, err = net.SplitHostPort(value); err != nil {
			return "", errors.New("is not HOST:PORT")
		}
		if host == "" {
			host = "127.0.0.1"
		}
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", errors.New("the port is not a number from 0 to 65535")
	}
	return net.JoinHostPort(host, port), nil
}
