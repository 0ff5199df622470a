//go:build unix

package natsbucket

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
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
