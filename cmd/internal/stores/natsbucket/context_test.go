//go:build unix

package natsbucket

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/internal/test/certificates"
)

// putContext creates a directory of contexts for the nats command.
func putContext(t *testing.T, name string, fields map[string]any) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := filepath.Join(home, ".config", "nats", "context")
	must.OK(t, os.MkdirAll(dir, 0o700))
	text, err := json.Marshal(fields)
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(dir, name+".json"), text, 0o600))
	return home
}

// seed and otherSeed are of users of no account.
const (
	seed      = "SUADAMJSGM2DKNRXHA4WCYTDMRSWMMBRGIZTINJWG44DSYLCMNSGKZRF4M"
	otherSeed = "SUADCMJSGM2DKNRXHA4WCYTDMRSWMMBRGIZTINJWG44DSYLCMNSGKZTDXI"
)

// decorated returns the content of a file of credentials.
func decorated(jwt, seed string) string {
	return "-----BEGIN NATS USER JWT-----\n" + jwt + "\n------END NATS USER JWT------\n\n" +
		"-----BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n"
}

func TestContexts(t *testing.T) {
	type fields map[string]any
	for _, c := range []struct {
		why    string
		fields fields
		is     func(target, nats.Options) bool
	}{
		{"nothing", fields{}, func(g target, o nats.Options) bool { return g.url == nats.DefaultURL && o.User == "" }},
		{"servers", fields{"url": "nats://a,nats://b"}, func(g target, _ nats.Options) bool { return g.url == "nats://a,nats://b" }},
		{"a user, who has precedence", fields{"user": "u", "password": "p", "creds": "c"}, func(_ target, o nats.Options) bool {
			return o.User == "u" && o.Password == "p" && o.UserJWT == nil
		}},
		{"a token", fields{"token": "t"}, func(_ target, o nats.Options) bool { return o.Token == "t" }},
		{"a user in the URL, who has precedence", fields{"url": "nats://u:p@a,nats://u:p@b", "user": "x"}, func(g target, o nats.Options) bool {
			return g.url == "nats://a,nats://b" && o.User == "u" && o.Password == "p"
		}},
		{"a token in the URL", fields{"url": "nats://t@a"}, func(g target, o nats.Options) bool { return g.url == "nats://a" && o.Token == "t" }},
		{"users of servers", fields{"url": "nats://u:p@a,nats://v:p@b"}, func(g target, o nats.Options) bool {
			return g.url == "nats://u:p@a,nats://v:p@b" && o.User == ""
		}},
		{"a file of credentials", fields{"creds": "~/c.creds"}, func(_ target, o nats.Options) bool {
			jwt, err := o.UserJWT()
			return jwt == "j" && err == nil
		}},
		{"a JWT and its seed", fields{"user_jwt": "j", "user_seed": seed}, func(_ target, o nats.Options) bool {
			jwt, err := o.UserJWT()
			return jwt == "j" && err == nil
		}},
		{"a JWT alone", fields{"user_jwt": "j"}, func(_ target, o nats.Options) bool {
			jwt, err := o.UserJWT()
			signed, _ := o.SignatureCB([]byte("n"))
			return jwt == "j" && err == nil && signed == nil
		}},
		{"a proxy", fields{"socks_proxy": "socks5://127.0.0.1:1"}, func(_ target, o nats.Options) bool {
			_, err := o.CustomDialer.Dial("tcp", "127.0.0.1:2")
			return err != nil && strings.Contains(err.Error(), "socks")
		}},
		{"an inbox", fields{"inbox_prefix": "_I"}, func(_ target, o nats.Options) bool { return o.InboxPrefix == "_I" }},
		{"TLS first", fields{"tls_first": true}, func(_ target, o nats.Options) bool { return o.TLSHandshakeFirst }},
		{"JetStream's domain", fields{"jetstream_domain": "d"}, func(g target, _ nats.Options) bool { return g.domain == "d" }},
		{"JetStream's prefix", fields{"jetstream_api_prefix": "p"}, func(g target, _ nats.Options) bool { return g.prefix == "p" }},
		{"unknown fields", fields{"color_scheme": "blue"}, func(target, nats.Options) bool { return true }},
	} {
		t.Run(c.why, func(t *testing.T) {
			home := putContext(t, "prod", c.fields)
			must.OK(t, os.WriteFile(filepath.Join(home, "c.creds"), []byte(decorated("j", seed)), 0o600))
			got, err := fromContext("prod", nil)
			must.OK(t, err)
			o := nats.GetDefaultOptions()
			for _, option := range got.options {
				must.OK(t, option(&o))
			}
			if !c.is(got, o) {
				t.Errorf("got %+v, %+v", got, o)
			}
		})
	}
}

func TestUnusableContexts(t *testing.T) {
	for name, c := range map[string]struct {
		fields map[string]any
		want   string
	}{
		"test":    {nil, `unknown context "test"`},
		"../prod": {nil, `invalid context name "../prod"`},
		"store":   {map[string]any{"windows_cert_store": "user"}, "windows_cert_store is not supported"},
		"profile": {map[string]any{"nsc": "nsc://o/a/u"}, "nsc generate profile nsc://o/a/u: "},
		"key":     {map[string]any{"nkey": "/none"}, "no such file"},
		"no":      {map[string]any{"url": 7}, "cannot unmarshal"},
	} {
		putContext(t, "prod", nil)
		if c.fields != nil {
			putContext(t, name, c.fields)
		}
		t.Setenv("PATH", "")
		if _, err := fromContext(name, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The nsc command prints the servers and the credentials of a user.
func TestNSCContext(t *testing.T) {
	home := putContext(t, "prod", map[string]any{"nsc": "nsc://o/a/u"})
	script := "#!/bin/sh\n" + `echo '{"user_creds":"'$3'","operator":{"service":["nats://a","nats://b"]}}'`
	must.OK(t, os.WriteFile(filepath.Join(home, "nsc"), []byte(script), 0o700))
	t.Setenv("PATH", home)
	c, err := readContext("prod")
	if err != nil || c.URL != "nats://a,nats://b" || c.Creds != "nsc://o/a/u" {
		t.Errorf("got %+v, %v", c, err)
	}
	if all := Contexts(); !slices.Equal(all, []string{"prod"}) {
		t.Errorf("known are %v", all)
	}
}

// TestCommandThatHangs: a client that connects again holds its lock, and must not wait forever for
// somebody who unlocks the password manager.
func TestCommandThatHangs(t *testing.T) {
	if _, err := output(time.Millisecond, "sleep", "1000"); err == nil || !strings.Contains(err.Error(), "sleep does not answer within 1ms") {
		t.Errorf("got %v", err)
	}
}

// nowhere is a dialer that reaches nothing.
type nowhere struct{}

func (nowhere) Dial(string, string) (net.Conn, error) { return nil, errors.New("nowhere") }

// shown returns what a client of these options would show to a server that it dials now.
func shown(t *testing.T, o *nats.Options) string {
	t.Helper()
	_, _ = o.CustomDialer.Dial("tcp", "127.0.0.1:1")
	user, password := o.UserInfo()
	all := []string{user, password, o.TokenHandler()}
	if o.UserJWT != nil {
		jwt, err := o.UserJWT()
		if err != nil {
			t.Error(err)
		}
		all = append(all, jwt)
	}
	return strings.Join(all, " ")
}

// followed returns the options of the context prod, and the reports of stale credentials.
func followed(t *testing.T) (o *nats.Options, reports *[]string) {
	t.Helper()
	reports = new([]string)
	got, err := fromContext("prod", func(err error) { *reports = append(*reports, err.Error()) })
	must.OK(t, err)
	all := nats.GetDefaultOptions()
	o = &all
	o.CustomDialer = nowhere{}
	for _, set := range append(got.options, got.login.follow) {
		must.OK(t, set(o))
	}
	return o, reports
}

func TestContextIsReadForEachDial(t *testing.T) {
	home := putContext(t, "prod", map[string]any{"user": "u", "password": "p"})
	o, reports := followed(t)
	file, creds := filepath.Join(home, ".config", "nats", "context", "prod.json"), filepath.Join(home, "c.creds")
	write := func(file, text string) func() {
		return func() {
			must.Write(t, file, text)
		}
	}
	for _, step := range []struct {
		why     string
		happens func()
		want    string
		reports int
	}{
		{"the first", func() {}, "u p  ", 0},
		{"another password", write(file, `{"user": "u", "password": "q"}`), "u q  ", 0},
		{"half-written", write(file, `{"user": "u", "passw`), "u q  ", 1},
		{"other servers", write(file, `{"url": "nats://elsewhere", "user": "u", "password": "r"}`), "u q  ", 2},
		{"no login", write(file, `{}`), "u q  ", 3},
		{"a token", write(file, `{"token": "t"}`), "  t ", 3},
		{"a file that is missing", write(file, `{"creds": "`+creds+`"}`), "  t ", 4},
		{"a file", write(creds, decorated("j", seed)), "   j", 4},
		{"a file without a key", write(creds, decorated("k", "")), "   j", 5},
		{"the whole file", write(creds, decorated("k", otherSeed)), "   k", 5},
		{"gone", func() { _ = os.Remove(file) }, "   k", 6},
	} {
		step.happens()
		if got := shown(t, o); got != step.want || len(*reports) != step.reports {
			t.Errorf("%s: shown is %q with %d reports, want %q with %d: %q", step.why, got, len(*reports), step.want, step.reports, *reports)
		}
	}
}

// TestNKeyStays: the library takes the public key once, so another seed would not fit.
func TestNKeyStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seed")
	put := func(seed string) {
		must.Write(t, file, seed)
	}
	put(seed)
	putContext(t, "prod", map[string]any{"nkey": file})
	o, reports := followed(t)
	before, err := o.SignatureCB([]byte("nonce"))
	must.OK(t, err)
	put(otherSeed)
	shown(t, o)
	after, err := o.SignatureCB([]byte("nonce"))
	if err != nil || string(after) != string(before) || o.UserJWT != nil {
		t.Errorf("signed with another key (%v)", err)
	}
	if len(*reports) != 1 || !strings.Contains((*reports)[0], "start this process again") {
		t.Errorf("reported are %q", *reports)
	}
}

func TestCertificatesOfAContextAreReadForEachDial(t *testing.T) {
	ca, cert, key := certificates.New(t)
	otherCA, otherCert, otherKey := certificates.New(t)
	putContext(t, "prod", map[string]any{"ca": ca, "cert": cert, "key": key})
	o, _ := followed(t)
	was, err := o.TLSCertCB()
	roots, err2 := o.RootCAsCB()
	must.OK(t, errors.Join(err, err2))
	for from, to := range map[string]string{otherCA: ca, otherCert: cert, otherKey: key} {
		must.OK(t, os.Rename(from, to))
	}
	shown(t, o)
	now, err := o.TLSCertCB()
	rootsNow, err2 := o.RootCAsCB()
	if err := errors.Join(err, err2); err != nil || now.Leaf.Equal(was.Leaf) || rootsNow.Equal(roots) {
		t.Errorf("the certificates are the same (%v)", err)
	}
	putContext(t, "prod", nil)
	shown(t, o)
	if last, err := o.TLSCertCB(); err != nil || !last.Leaf.Equal(now.Leaf) {
		t.Errorf("TLS is turned off (%v)", err)
	}
}

// TestCommandsAreAskedSeldom: a password manager allows few requests, and connecting is tried
// twenty times a second.
func TestCommandsAreAskedSeldom(t *testing.T) {
	home := putContext(t, "prod", map[string]any{"creds": "op://vault/item"})
	asked := filepath.Join(home, "asked")
	script := "#!/bin/sh\necho >> " + asked + "\ncat <<.\n" + decorated("j", seed) + ".\n"
	must.OK(t, os.WriteFile(filepath.Join(home, "op"), []byte(script), 0o700))
	t.Setenv("PATH", home+":"+os.Getenv("PATH"))
	o, _ := followed(t)
	for range 5 {
		if got := shown(t, o); got != "   j" {
			t.Errorf("shown is %q", got)
		}
	}
	if n, err := os.ReadFile(asked); err != nil || len(n) != 1 {
		t.Errorf("asked %d times (%v)", len(n), err)
	}
}

// broken is a connection whose write fails after some bytes.
type broken struct {
	net.Conn
	err  error
	sent []byte
}

func (b *broken) Write(p []byte) (int, error) {
	b.sent = append(b.sent, p[:1]...)
	return 1, b.err
}

// TestGreeting: an error of the first writes is ignored, so that the client reads the server's
// message. Nothing may follow a partial write.
func TestGreeting(t *testing.T) {
	wire := &broken{err: syscall.EPIPE}
	g := &greeting{Conn: wire}
	for i := range firstWrites + 1 {
		n, err := g.Write([]byte("CONNECT"))
		first := i < firstWrites
		if first != (err == nil && n == 7) {
			t.Errorf("write %d returned %d, %v", i, n, err)
		}
		if !first && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write %d lost its cause: %v", i, err)
		}
	}
	if string(wire.sent) != "C" {
		t.Errorf("%q was sent after a failed write", wire.sent)
	}
	slow := &greeting{Conn: &broken{err: os.ErrDeadlineExceeded}}
	if _, err := slow.Write([]byte("CONNECT")); err == nil {
		t.Error("a write that took too long counts as sent")
	}
}
