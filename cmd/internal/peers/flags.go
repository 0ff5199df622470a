// Package peers reads the flags of --peer, and opens a member that exchanges renewals with others.
package peers

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
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
