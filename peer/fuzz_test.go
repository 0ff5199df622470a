package peer

import (
	"net/url"
	"testing"
)

// FuzzChallenge: a header is a challenge in one spelling only.
func FuzzChallenge(f *testing.F) {
	f.Add(text.EncodeToString(newChallenge()))
	f.Add("")
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB")
	f.Fuzz(func(t *testing.T, header string) {
		c, err := parseChallenge(header)
		if err == nil && text.EncodeToString(c) != header {
			t.Errorf("%q is read as %x", header, c)
		}
		if key, ok := publicKey(header); ok && text.EncodeToString(key) != header {
			t.Errorf("%q is read as the key %x", header, key)
		}
	})
}

// FuzzAddress: an address in a record leads to that host alone, and to the path of the settings.
func FuzzAddress(f *testing.F) {
	f.Add("node-1:7000", "billing")
	f.Add("a@b", "a&b=c#d")
	f.Add("[::1%25lo]:1", "")
	f.Add("host/path?x", "é")
	f.Fuzz(func(t *testing.T, address, key string) {
		d := &dialler{scheme: "http", path: "/health/leadership"}
		u, err := d.url(address, key)
		if err != nil {
			return
		}
		back, err := url.Parse(u.String())
		if err != nil || back.Host != address || back.Path != d.path || back.User != nil || back.Fragment != "" {
			t.Fatalf("%q leads to %q, %v", address, u, err)
		}
		if q := back.Query(); len(q) != 1 || q.Get("election") != key {
			t.Errorf("the election %q is asked for as %q", key, back.RawQuery)
		}
	})
}
