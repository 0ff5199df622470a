package peers

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

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
