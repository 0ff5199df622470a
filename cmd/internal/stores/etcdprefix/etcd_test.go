package etcdprefix

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kind"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/etcdkv"
	"github.com/tenure-go/tenure/internal/test/certificates"
)

func parsed(raw string) (kind.Place, error) {
	scheme, _, _ := strings.Cut(raw, ":")
	return Kind().Parse(scheme, raw)
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want Place
		show string // empty: raw
	}{
		{"etcd://a:1,b:2/elections", Place{Servers: []string{"a:1", "b:2"}, Prefix: "elections"}, ""},
		{"etcd://[::1]:2/elections", Place{Servers: []string{"[::1]:2"}, Prefix: "elections"}, ""},
		{"etcd://a/x/y/", Place{Servers: []string{"a"}, Prefix: "x/y"}, "etcd://a/x/y"},
		{"etcd://bob@a/x", Place{Servers: []string{"a"}, User: "bob", Prefix: "x"}, "etcd://***@a/x"},
		{"etcds://bob:s3%2Fcret@a/x", Place{Secure: true, Servers: []string{"a"}, User: "bob", Password: "s3/cret", Prefix: "x"}, "etcds://***@a/x"},
		{"etcds://a/x?tls-key=k.pem&tls-cert=c.pem&tls-ca=ca.pem", Place{Secure: true, Servers: []string{"a"}, Prefix: "x", CA: "ca.pem", Cert: "c.pem", Key: "k.pem"},
			"etcds://a/x?tls-ca=ca.pem&tls-cert=c.pem&tls-key=k.pem"},
		{"etcd://bob@a/x?password-file=p", Place{Servers: []string{"a"}, User: "bob", PasswordFile: "p", Prefix: "x"}, "etcd://***@a/x?password-file=p"},
	} {
		got, err := parsed(c.raw)
		if err != nil {
			t.Errorf("%s: %v", c.raw, err)
			continue
		}
		if c.show == "" {
			c.show = c.raw
		}
		if !reflect.DeepEqual(got, &c.want) || got.String() != c.show {
			t.Errorf("%s: got %+v, shown as %s", c.raw, *got.(*Place), got)
		}
		if text := fmt.Sprintf("%v%+v%#v%s", got, got, got, got.Commands("k").Look); strings.Contains(text, "cret") || strings.Contains(text, "bob") {
			t.Errorf("%s: shows %s", c.raw, text)
		}
	}
}

func TestRefusedURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"etcd:///x":                         "names no host",
		"etcd://a":                          "names no prefix",
		"etcd://a/":                         "names no prefix",
		"etcd://a:0/x":                      "port",
		"etcd://a,,b/x":                     "a host is empty",
		"etcd://a:port/x":                   "not a valid URL",
		"etcd://:s3cret@a/x":                "no user before @",
		"etcd://bob:12/s3cret@a/x":          "/ before @",
		"etcd://a/x#s3cret":                 "behind #",
		"etcd://a/x?password=s3cret":        "is unknown",
		"etcd://a/x?s3cret":                 "has no value",
		"etcd://a/x?tls-ca=ca.pem":          "no TLS",
		"etcds://a/x?tls-cert=c.pem":        "only one of tls-cert and tls-key",
		"etcds://a/x?tls-ca=a.pem&tls-ca=b": "given twice",
		"etcds://a/x?tls-ca=":               "is empty",
		"etcd://a/x?password-file=p":        "no user",
		"etcd://b:cret@a/x?password-file=p": "a second password",
		"etcd://a/" + longer(maxPrefix):     "at most 255 bytes",
	} {
		_, err := parsed(raw)
		var f *fault.Error
		if !errors.As(err, &f) || f.Hint == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error()+f.Hint, "cret") {
			t.Errorf("%.60s: got %v", raw, err)
		}
	}
}

func longer(than int) string { return strings.Repeat("p", than+1) }

func TestCommands(t *testing.T) {
	at, err := parsed("etcds://bob@a:1,b:1/x?tls-ca=ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	const want = "etcdctl --endpoints=https://a:1,https://b:1 --cacert=ca.pem --user=*** get --print-value-only /x/k"
	if got := at.Commands("k").Look; got != want {
		t.Errorf("got %s", got)
	}
}

// TestOpenNamesWhatIsMissing: mistakes that need no server.
func TestOpenNamesWhatIsMissing(t *testing.T) {
	t.Setenv(passwordVariable, "")
	for raw, want := range map[string]string{
		"etcd://bob@127.0.0.1:9/x":                           "no password",
		"etcd://bob@127.0.0.1:9/x?password-file=missing":     "password-file: open missing",
		"etcds://127.0.0.1:9/x?tls-ca=missing.pem":           "tls-ca: open missing.pem",
		"etcds://127.0.0.1:9/x?tls-cert=c.pem&tls-key=k.pem": `tls-cert "c.pem" with tls-key "k.pem"`,
	} {
		at, err := parsed(raw)
		if err != nil {
			t.Fatal(err)
		}
		_, err = at.Open(t.Context(), kind.Options{})
		var f *fault.Error
		if !errors.As(err, &f) || f.Hint == "" || f.Code != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

// TestExplain: each mistake has a remedy, and waiting helps only against those that may pass.
func TestExplain(t *testing.T) {
	at := &Place{Servers: []string{"a"}, Prefix: "x"}
	for _, c := range []struct {
		err     error
		hint    string
		passing bool
	}{
		{fmt.Errorf("%w: %w", driver.ErrDenied, etcdkv.ErrRefusedTLS), "tls-cert=client.pem", false},
		{etcdkv.ErrNoUser, "etcd://user:password@host/x", false},
		{etcdkv.ErrLogin, "ETCDCTL_PASSWORD", false},
		{fmt.Errorf("%w: permission denied", driver.ErrDenied), "readwrite /x/ --prefix", false},
		{errors.New("x509: certificate signed by unknown authority"), "in tls-ca", false},
		{errors.New("x509: certificate has expired or is not yet valid"), "renew the certificate", false},
		{errors.New("tls: first record does not look like a TLS handshake"), "give etcd://", false},
		{errors.New("error reading server preface: EOF"), "give etcds://", true},
		{etcdkv.ErrNoQuorum, "endpoint health", true},
		{context.DeadlineExceeded, "endpoint health", true},
	} {
		f := at.Explain(c.err)
		if !strings.Contains(f.Hint, c.hint) || f.Passing != c.passing || !errors.Is(f, c.err) {
			t.Errorf("%v: hint %q, passing %v", c.err, f.Hint, f.Passing)
		}
	}
}

// TestReplacedCertificate: the next connection gets the certificate that is in the files by then.
// While they cannot be read, it gets the last one.
func TestReplacedCertificate(t *testing.T) {
	ca, renew := certificates.Renewed(t)
	cert, key := renew("client", time.Hour)
	stale := 0
	at := &Place{Secure: true, CA: ca, Cert: cert, Key: key}
	c, err := at.certificates(func(error) { stale++ })
	if err != nil {
		t.Fatal(err)
	}
	given := func() string {
		pair, err := c.GetClientCertificate(new(tls.CertificateRequestInfo))
		if err != nil {
			t.Fatal(err)
		}
		return string(pair.Certificate[0])
	}
	first := given()
	renew("client", 2*time.Hour)
	second := given()
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if first == second || given() != second || stale != 1 {
		t.Errorf("replaced %v, kept %v, reported %d times", first != second, given() == second, stale)
	}
}

// TestLostConnections: the loss of the last connection is reported, and its return.
func TestLostConnections(t *testing.T) {
	var told []bool
	c := &connections{told: func(up bool, _ error) { told = append(told, up) }}
	begin, end := new(stats.ConnBegin), new(stats.ConnEnd)
	for _, s := range []stats.ConnStats{begin, begin, end, end, begin, end} {
		c.HandleConn(t.Context(), s)
	}
	c.closed.Store(true)
	c.HandleConn(t.Context(), begin)
	if want := []bool{false, true, false}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
