package natsbucket

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzContext: a login in the URL of a context becomes its fields, and no error shows it.
func FuzzContext(f *testing.F) {
	f.Add([]byte(`{"url":"nats://u:p@a:1,nats://u:p@b:2","token":"t"}`))
	f.Add([]byte(`{"url":"nats://t@a","socks_proxy":"socks5://u:p@h"}`))
	f.Add([]byte(`{"url":",nats://u:p@[::1","nsc":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &natsContext{}
		if err := json.Unmarshal(text, c); err != nil {
			return
		}
		was := c.URL
		c.takeLogin()
		if c.URL == was {
			return
		}
		if strings.Contains(c.URL, "@") && strings.Count(was, "@") == strings.Count(was, ",")+1 {
			t.Errorf("the URL %q still has a login: %q", was, c.URL)
		}
		if c.Token == "" && c.User == "" && c.Password != "" {
			t.Errorf("%q has a password alone", was)
		}
		if c.Token != "" && c.User != "" {
			t.Errorf("%q has two logins: %+v", was, c)
		}
	})
}
