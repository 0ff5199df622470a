package stores_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// secret is the password in fuzzed URLs. It has only characters that a URL takes as they are.
const secret = "pass-s3cret-w0rd"

// FuzzURL: a URL that is accepted survives the encoding for another process, and its text is the
// same then.
func FuzzURL(f *testing.F) {
	seedURLs(func(raw string) { f.Add(raw) })
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := stores.Parse("--store", raw)
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: the error is %q", raw, err)
			}
			return
		}
		if p.Description() == nil || p.Kind() == "" {
			t.Fatalf("%q is a place of no kind", raw)
		}
		_ = p.Commands("billing")
		_, _ = p.Limits()
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%q is accepted, and not written: %v", raw, err)
		}
		back := stores.Place{Setting: p.Setting}
		if err := json.Unmarshal(text, &back); err != nil || back.String() != p.String() {
			t.Errorf("%q is written as %s, and read as %v instead of %v, %v", raw, text, back, p, err)
		}
	})
}

// FuzzPasswordInURL: a password in front of the @ is in no error and no text, whatever stands
// around it.
func FuzzPasswordInURL(f *testing.F) {
	for _, scheme := range []string{"nats", "kafka", "postgres", "mysql", "s3", "redis", "etcd", "sqlite", "x"} {
		f.Add(scheme+"://user", "host/E", "billing")
		f.Add(scheme+"://user", "host:1,i:2/E?table=t", "billing")
	}
	f.Fuzz(func(t *testing.T, before, after, key string) {
		hides(t, before+":"+secret+"@"+after, key)
	})
}

// FuzzSecretParameter: the value of a parameter that may be a secret is in no error and no text.
func FuzzSecretParameter(f *testing.F) {
	seedURLs(func(raw string) {
		f.Add(raw, "password", "")
		f.Add(raw, "region=r&secret", "&timeout=1s")
	})
	f.Fuzz(func(t *testing.T, before, parameter, after string) {
		known := strings.ContainsAny(parameter, "&%") || !strings.HasSuffix(parameter, "secret") && !strings.HasSuffix(parameter, "password")
		if known || strings.ContainsAny(before, "?#") {
			return
		}
		hides(t, before+"?"+parameter+"="+secret+after, "billing")
	})
}

func seedURLs(add func(raw string)) {
	for _, k := range stores.Kinds() {
		for _, s := range k.Schemes {
			add(s.Form)
			add(strings.NewReplacer("[", "", "]", "").Replace(s.Form))
		}
	}
	for _, raw := range []string{
		"nats://host:4222/E", "s3://bucket/prefix?region=r", "gs://bucket", "kafka://h:1,i/t?mode=neli", "postgres://user@h/db?sslmode=disable",
		"mysql://h/db?tls=true", "sqlite:/a b/c.db", "redis://h/1", "rediss://h", "etcd://h:1,i:2/p", "k8s:namespace", "dynamodb://table?region=r",
		"azblob://account/container", "memory:", "nats:host",
	} {
		add(raw)
	}
}

// hides fails if a secret in a URL is shown.
func hides(t *testing.T, raw, key string) {
	t.Helper()
	texts := []string{stores.Redact(raw)}
	p, err := stores.Parse("--store", raw)
	if err != nil {
		texts = append(texts, err.Error(), fmt.Sprintf("%+v", err))
	} else {
		texts = append(texts, p.String(), fmt.Sprintf("%+v %#v", p, p), fmt.Sprint(p.Explain(errTest)), p.Nomination(key))
		if !strings.HasPrefix(raw, "sqlite:") { // there it is a part of the file's name
			c := p.Commands(key)
			texts = append(texts, c.Look, c.Delete)
		}
		if _, err := p.Limits(); err != nil {
			texts = append(texts, err.Error())
		}
	}
	for _, text := range texts {
		if strings.Contains(text, secret) {
			t.Errorf("%q is shown as %q", raw, text)
		}
	}
}

var errTest = fmt.Errorf("test")
