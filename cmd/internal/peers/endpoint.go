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
		return Endpoint{}, errors.New("has a port that is not from 0 to 65535")
	}
	if strings.ContainsAny(host, "%/@?# ") {
		return Endpoint{}, errors.New("has a host that is none; a zone cannot be dialled from elsewhere")
	}
	return Endpoint{host, n}, nil
}

// String is host:port.
func (e Endpoint) String() string { return net.JoinHostPort(e.Host, strconv.Itoa(e.Port)) }

// addr is invalid for a name.
func (e Endpoint) addr() netip.Addr {
	a, _ := netip.ParseAddr(e.Host)
	return a.Unmap()
}

// everywhere: all addresses of the machine.
func (e Endpoint) everywhere() bool { return e.Host == "" || e.addr().IsUnspecified() }

func (e Endpoint) loopback() bool { return e.Host == "localhost" || e.addr().IsLoopback() }

// at is the same host with a port that has been found out, if it was left open.
func (e Endpoint) at(port int) Endpoint {
	if e.Port == 0 {
		e.Port = port
	}
	return e
}

// shifted is the i-th of several on one machine, from 0.
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

// networks are the networks in which leaders may be by default. They leave out the loopback
// interface, the addresses by which clouds hand out credentials, and all public addresses: a record
// can name any address.
func (e Endpoint) networks() []netip.Prefix {
	if e.loopback() {
		return loopbackNetworks
	}
	return privateNetworks
}
