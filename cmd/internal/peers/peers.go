// Package peers reads the flags of --peer, and opens a member that exchanges renewals with others.
package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/peer"
)

// Flags are the settings of the command line.
type Flags struct {
	listen, address string
	ca, cert, key   string
	allow           string
}

// The names of the flags.
const (
	flagPeer    = "peer"
	flagAddress = "peer-address"
	flagCA      = "peer-ca"
	flagCert    = "peer-cert"
	flagKey     = "peer-key"
	flagAllow   = "peer-allow"
)

// Define adds the flags to those of a command.
func (p *Flags) Define(f *pflag.FlagSet) {
	f.StringVar(&p.listen, flagPeer, "",
		"HOST:PORT at which to listen for other members, and report renewals and releases to them, if the store does not push; port 0: a free one")
	f.StringVar(&p.address, flagAddress, "",
		"HOST:PORT at which other members reach this one; port 0: the port of --peer (default the HOST:PORT of --peer)")
	f.StringVar(&p.ca, flagCA, "", "file with the CA certificates of all members, in PEM; with --peer-cert and --peer-key: mutual TLS")
	f.StringVar(&p.cert, flagCert, "", "file with this member's certificate, which names the host of its address and allows use as server and as client")
	f.StringVar(&p.key, flagKey, "", "file with the key of --peer-cert")
	f.StringVar(&p.allow, flagAllow, "",
		"networks in which leaders may be dialed, such as 10.0.0.0/8,fd00::/8 (default loopback if this member's own address is a loopback address, else the private networks)")
}

// Settings returns the settings of the flags, nil without --peer. Named returns the source of a
// flag: its own name or a variable of the environment. The error lists all problems, with a hint
// for the first.
func (p *Flags) Settings(named func(flag string) string) (*Settings, error) {
	if p.listen == "" {
		return nil, p.alone(named)
	}
	s := &Settings{CA: p.ca, Cert: p.cert, Key: p.key}
	r := reader{named: named}
	r.listen(s, p.listen)
	r.address(s, p.address)
	r.allow(s, p.allow)
	r.certificates(s)
	if err := errors.Join(r.problems...); err != nil {
		return nil, fault.New(r.hint, "%w", err)
	}
	return s, nil
}

// alone returns an error if another flag is given without --peer.
func (p *Flags) alone(named func(string) string) error {
	for _, f := range []struct{ flag, value string }{
		{flagAddress, p.address}, {flagCA, p.ca}, {flagCert, p.cert}, {flagKey, p.key}, {flagAllow, p.allow},
	} {
		if f.value != "" {
			return fault.OfUsage(fmt.Errorf("%s needs --peer", named(f.flag)))
		}
	}
	return nil
}

// reader collects the problems of the settings.
type reader struct {
	named    func(flag string) string
	problems []error
	hint     string // for the first problem
}

func (r *reader) wrong(hint, flag, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s "+format, append([]any{r.named(flag)}, args...)...))
	if r.hint == "" {
		r.hint = hint
	}
}

const example = "give a host and a port such as 10.0.0.7:8443, or 127.0.0.1:0"

func (r *reader) listen(s *Settings, value string) {
	at, err := parseEndpoint(value)
	if err != nil {
		r.wrong(example, flagPeer, "%s: %w", fault.Quote(value), err)
	}
	s.Listen = at
}

func (r *reader) address(s *Settings, value string) {
	s.Address = s.Listen
	if value == "" {
		if s.Listen.everywhere() && len(r.problems) == 0 {
			r.wrong("give --peer-address HOST:PORT, the address at which other members reach this one", flagPeer,
				"%v means all addresses of this machine, and other members cannot dial that", s.Listen)
		}
		return
	}
	at, err := parseEndpoint(value)
	switch {
	case err != nil:
		r.wrong(example, flagAddress, "%s: %w", fault.Quote(value), err)
	case at.everywhere():
		r.wrong(example, flagAddress, "%s is not an address that other members can dial", fault.Quote(value))
	}
	s.Address = at
}

func (r *reader) allow(s *Settings, value string) {
	own := s.Address.addr()
	if value == "" {
		s.Networks = s.Address.networks()
		if len(r.problems) == 0 && own.IsValid() && !s.allows(own) {
			r.wrong("name the networks that leaders are in with --peer-allow, such as "+own.String()+"/"+fmt.Sprint(own.BitLen()),
				flagAddressOr(s), "%v is neither loopback nor private, so members dial it only if --peer-allow names it", s.Address)
		}
		return
	}
	for text := range strings.SplitSeq(value, ",") {
		n, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			r.wrong("give networks such as 10.0.0.0/8,fd00::/8; a single address is 10.0.0.7/32", flagAllow, "has %s, which is not a network", fault.Quote(text))
			return
		}
		s.Networks = append(s.Networks, n.Masked())
	}
	if own.IsValid() && !s.allows(own) {
		r.wrong("add "+own.String()+"/"+fmt.Sprint(own.BitLen()), flagAllow, "does not allow %v, the address of this member itself", own)
	}
}

// certificates checks that all three files are given, or none, and that they fit.
func (r *reader) certificates(s *Settings) {
	var given, missing []string
	for _, f := range []struct{ flag, file string }{{flagCA, s.CA}, {flagCert, s.Cert}, {flagKey, s.Key}} {
		if f.file != "" {
			given = append(given, f.flag)
		} else {
			missing = append(missing, "--"+f.flag)
		}
	}
	switch {
	case len(given) == 0:
	case len(missing) > 0:
		r.wrong("give all three, or none for plain HTTP", given[0], "needs %s too", strings.Join(missing, " and "))
	default:
		if flag, file, err := s.checkTLS(); err != nil {
			r.wrong("all members need certificates of one authority, each for its own host, and for use as server and as client "+
				"(extended key usage serverAuth and clientAuth)", flag, "%s: %s", file, strings.TrimPrefix(err.Error(), "peer: "))
		}
	}
}

// flagAddressOr returns the flag that set the address: --peer-address or --peer.
func flagAddressOr(s *Settings) string {
	if s.Address == s.Listen {
		return flagPeer
	}
	return flagAddress
}

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

// Endpoint is a host and a port.
type Endpoint struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func parseEndpoint(value string) (Endpoint, error) {
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return Endpoint{}, errors.New("is not HOST:PORT")
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return Endpoint{}, errors.New("the port is not a number from 0 to 65535")
	}
	if strings.ContainsAny(host, "%/@?# ") {
		return Endpoint{}, errors.New("the host is not valid; other machines cannot dial an IPv6 address with a zone (such as %eth0)")
	}
	return Endpoint{host, n}, nil
}

// String is host:port.
func (e Endpoint) String() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

// addr returns the address of the host, or an invalid one if the host is a name.
func (e Endpoint) addr() netip.Addr {
	a, _ := netip.ParseAddr(e.Host)
	return a.Unmap()
}

// everywhere reports whether the host means all addresses of the machine.
func (e Endpoint) everywhere() bool { return e.Host == "" || e.addr().IsUnspecified() }

func (e Endpoint) loopback() bool { return e.Host == "localhost" || e.addr().IsLoopback() }

// at returns the endpoint with the given port if its own is 0.
func (e Endpoint) at(port int) Endpoint {
	if e.Port == 0 {
		e.Port = port
	}
	return e
}

// shifted returns the endpoint of the i-th member on one machine, from 0.
func (e Endpoint) shifted(i int) Endpoint {
	if e.Port != 0 {
		e.Port += i
	}
	return e
}

var (
	loopbackNetworks = prefixes("127.0.0.0/8", "::1/128")
	privateNetworks  = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)

func prefixes(all ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, p := range all {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}

// networks returns the networks in which leaders may be dialed by default: the loopback addresses
// if this endpoint is one, else the private ones. A record can name any address, so the private
// networks leave out loopback, link-local addresses (where clouds serve credentials) and public
// ones.
func (e Endpoint) networks() []netip.Prefix {
	if e.loopback() {
		return loopbackNetworks
	}
	return privateNetworks
}
