package peers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/certificates"
)

func parse(t *testing.T, args ...string) (*peers.Settings, error) {
	t.Helper()
	var p peers.Flags
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	p.Define(f)
	must.OK(t, f.Parse(args))
	return p.Settings(func(flag string) string { return "--" + flag })
}

const (
	loopback = "[127.0.0.0/8 ::1/128]"
	private  = "[10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7]"
)

func TestSettings(t *testing.T) {
	for _, c := range []struct{ args, listen, address, networks string }{
		{"--peer 127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", loopback},
		{"--peer [::1]:80", "[::1]:80", "[::1]:80", loopback},
		{"--peer localhost:80", "localhost:80", "localhost:80", loopback},
		{"--peer 192.168.1.7:80", "192.168.1.7:80", "192.168.1.7:80", private},
		{"--peer [fd00::7]:80", "[fd00::7]:80", "[fd00::7]:80", private},
		{"--peer node-1.example:80", "node-1.example:80", "node-1.example:80", private},
		{"--peer :80 --peer-address 10.0.0.7:8080", ":80", "10.0.0.7:8080", private},
		{"--peer 0.0.0.0:0 --peer-address node-1:0", "0.0.0.0:0", "node-1:0", private},
		{"--peer 203.0.113.7:80 --peer-allow 203.0.113.9/24", "203.0.113.7:80", "203.0.113.7:80", "[203.0.113.0/24]"},
		{"--peer 10.0.0.7:80 --peer-allow 10.0.0.0/24,fd00::/8", "10.0.0.7:80", "10.0.0.7:80", "[10.0.0.0/24 fd00::/8]"},
	} {
		s, err := parse(t, strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if s.Listen.String() != c.listen || s.Address.String() != c.address || fmt.Sprint(s.Networks) != c.networks {
			t.Errorf("%s: got %+v", c.args, s)
		}
		if text, err := json.Marshal(s); err != nil || !roundTrips(text, s) {
			t.Errorf("%s: %s, %v", c.args, text, err)
		}
	}
	if s, err := parse(t); s != nil || err != nil {
		t.Errorf("without --peer: %v, %v", s, err)
	}
}

func roundTrips(text []byte, want *peers.Settings) bool {
	var got peers.Settings
	return json.Unmarshal(text, &got) == nil && fmt.Sprint(got) == fmt.Sprint(*want)
}

// A process that can write to the store can make followers dial any address in an allowed network.
func TestOtherNetworksNeedPermission(t *testing.T) {
	for args, never := range map[string][]string{
		"--peer 10.0.0.7:80":  {"127.0.0.1", "::1", "169.254.169.254", "fe80::1", "8.8.8.8", "100.64.0.1", "2001:db8::1", "0.0.0.0"},
		"--peer 127.0.0.1:80": {"10.0.0.7", "192.168.0.1", "169.254.169.254", "8.8.8.8", "fd00::1"},
	} {
		s, err := parse(t, strings.Fields(args)...)
		must.OK(t, err)
		for _, n := range s.Networks {
			for _, a := range never {
				if n.Contains(netip.MustParseAddr(a)) {
					t.Errorf("%s: %s may be dialled", args, a)
				}
			}
		}
	}
}

func TestWrongSettingsAreReportedWithARemedy(t *testing.T) {
	ca, cert, key := certificates.New(t)
	otherCA, _, _ := certificates.New(t)
	tls := func(ca, cert, key string) string {
		return fmt.Sprintf(" --peer-ca %s --peer-cert %s --peer-key %s", ca, cert, key)
	}
	for _, c := range []struct{ args, err, hint string }{
		{"--peer 8443", `--peer "8443": is not HOST:PORT`, "10.0.0.7:8443"},
		{"--peer host:http", `--peer "host:http": the port`, "10.0.0.7:8443"},
		{"--peer host:65536", "the port is not a number", "10.0.0.7:8443"},
		{"--peer [fe80::1%eth0]:80", "zone", "10.0.0.7:8443"},
		{"--peer :8443", "--peer :8443 means all addresses", "--peer-address HOST:PORT"},
		{"--peer 0.0.0.0:8443", "means all addresses", "--peer-address HOST:PORT"},
		{"--peer [::]:8443", "means all addresses", "--peer-address HOST:PORT"},
		{"--peer :80 --peer-address 0.0.0.0:80", `--peer-address "0.0.0.0:80" is not an address`, "10.0.0.7:8443"},
		{"--peer :80 --peer-address x", `--peer-address "x": is not HOST:PORT`, "10.0.0.7:8443"},
		{"--peer 203.0.113.7:80", "--peer 203.0.113.7:80 is neither loopback nor private", "--peer-allow, such as 203.0.113.7/32"},
		{"--peer :80 --peer-address [2001:db8::7]:80", "--peer-address [2001:db8::7]:80 is neither", "--peer-allow, such as 2001:db8::7/128"},
		{"--peer 10.0.0.7:80 --peer-allow 10.0.0.7", `--peer-allow has "10.0.0.7", which is not a network`, "10.0.0.7/32"},
		{"--peer 10.0.0.7:80 --peer-allow 10.1.0.0/16", "--peer-allow does not allow 10.0.0.7", "add 10.0.0.7/32"},
		{"--peer 127.0.0.1:0 --peer-cert x", "--peer-cert needs --peer-ca and --peer-key too", "all three"},
		{"--peer 127.0.0.1:0" + tls("missing", cert, key), "--peer-ca missing: authorities: open missing", "one authority"},
		{"--peer 127.0.0.1:0" + tls(ca, "missing", key), "--peer-cert missing: ", "one authority"},
		{"--peer 127.0.0.1:0" + tls(ca, cert, "missing"), "--peer-key missing: ", "one authority"},
		{"--peer 127.0.0.1:0" + tls(otherCA, cert, key), "is not good for a", "one authority"},
		{"--peer 127.0.0.1:0" + tls(ca, cert, ca), "with key " + ca, "one authority"},
		{"--peer 10.0.0.7:0" + tls(ca, cert, key), "10.0.0.7", "own host"},
	} {
		_, err := parse(t, strings.Fields(c.args)...)
		var f *fault.Error
		if !errors.As(err, &f) || !strings.Contains(f.Error(), c.err) || !strings.Contains(f.Hint, c.hint) {
			t.Errorf("%s: got %v", c.args, err)
		}
	}
}

func TestMembersOnOneMachineUseSeparatePorts(t *testing.T) {
	s, err := parse(t, "--peer", "127.0.0.1:8000", "--peer-address", "localhost:9000")
	must.OK(t, err)
	if m := s.ForMember(2); m.Listen.Port != 8002 || m.Address.Port != 9002 || s.Listen.Port != 8000 {
		t.Errorf("got %+v of %+v", m, s)
	}
	if free, err := parse(t, "--peer", "127.0.0.1:0"); err != nil || free.ForMember(2).Listen.Port != 0 {
		t.Errorf("%v, %v", free, err)
	}
	if s.CheckMembers(56536) != nil || s.CheckMembers(56537) == nil {
		t.Error("the last port is 65535")
	}
	var none *peers.Settings
	if none.ForMember(1) != nil || none.CheckMembers(9) != nil {
		t.Error("no peers have none")
	}
}
