package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/peer"
)

// Settings are those of one member.
type Settings struct {
	// Listen is the endpoint at which the member listens; port 0 is a free one. Address is the one
	// at which others reach it; port 0 is the port of the listener.
	Listen  Endpoint `json:"listen"`
	Address Endpoint `json:"address"`
	// CA, Cert and Key are files; all or none.
	CA   string `json:"ca,omitempty"`
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// Networks are those in which leaders may be dialed.
	Networks []netip.Prefix `json:"networks"`
}

// Scheme returns http or https.
func (s *Settings) Scheme() string {
	if s.Cert != "" {
		return "https"
	}
	return "http"
}

// ForMember returns the settings of the i-th member on this machine, from 0. A given port is the
// first member's, and the others get the ports after it.
func (s *Settings) ForMember(i int) *Settings {
	if s == nil {
		return nil
	}
	own := *s
	own.Listen, own.Address = s.Listen.shifted(i), s.Address.shifted(i)
	return &own
}

// CheckMembers returns an error if there are not enough ports for n members.
func (s *Settings) CheckMembers(n int) error {
	if s == nil {
		return nil
	}
	for _, e := range []Endpoint{s.Listen, s.Address} {
		if last := e.shifted(n - 1); last.Port > 65535 {
			return fmt.Errorf("--peer: %d members from %v on would have ports above 65535", n, e)
		}
	}
	return nil
}

func (s *Settings) allows(a netip.Addr) bool {
	for _, n := range s.Networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// load reads the files. It returns an error also if the certificate does not name the host at which
// others reach this member.
func (s *Settings) load() (server, client *tls.Config, err error) {
	if server, client, err = peer.LoadTLS(s.CA, s.Cert, s.Key); err == nil {
		err = server.Certificates[0].Leaf.VerifyHostname(s.Address.Host)
	}
	return server, client, err
}

// checkTLS returns an error if other members would refuse this one because of its certificates,
// with the flag and the file at fault.
func (s *Settings) checkTLS() (flag, file string, err error) {
	if _, _, err := peer.LoadTLS(s.CA, "", ""); err != nil {
		return flagCA, s.CA, err
	}
	if _, err := os.ReadFile(s.Key); err != nil {
		return flagKey, s.Key, err
	}
	_, _, err = s.load()
	return flagCert, s.Cert, err
}

// Member is a member that listens to others.
type Member struct {
	*peer.Store
	// Address is the address that its elections publish.
	Address string
}

// Open puts peers on top of a store that does not push, and listens. OnError is called with each
// failure between members, and with nil when it works again; it may be called concurrently. Close
// the member after its elections have ended.
func (s *Settings) Open(ctx context.Context, store driver.Store, onError func(key string, err error)) (*Member, error) {
	cfg := peer.Config{Networks: s.Networks, OnError: onError}
	if s.Cert != "" {
		cfg.TLS = s.load
	}
	p, err := peer.New(store, cfg)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen.String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--peer %v: %w", s.Listen, err), p.Close())
	}
	m := &Member{Store: p, Address: s.Address.at(l.Addr().(*net.TCPAddr).Port).String()}
	go func() {
		if err := p.Serve(l); err != nil {
			onError("", err)
		}
	}()
	return m, nil
}
