package members

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/record"
)

// FuzzReport: no report of a process makes the reader panic, and each member of it is bounded.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`[{"election":"billing","id":"a","state":"leading","incarnation":"i","address":"h:1"}]`))
	f.Add([]byte(`[`))
	f.Add([]byte(`[{"election":"billing","problem":"` + strings.Repeat("é", maxReason) + `"}]`))
	all := func(string) bool { return true }
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := decode(json.NewDecoder(bytes.NewReader(text)), all)
		if err != nil && got != nil {
			t.Errorf("%q returns members and %v", text, err)
		}
		for _, m := range append(got, Answers([][]byte{text}, all)...) {
			if len(m.Problem) > maxReason || len(m.ID) > record.MaxName || len(m.Address) > record.MaxName || len(m.State) > record.MaxName {
				t.Errorf("out of bounds: %+v", m)
			}
		}
	})
}

// FuzzAddress: each address that is accepted can be requested, and no way of showing it shows a
// password.
func FuzzAddress(f *testing.F) {
	f.Add("http://node-1:9464/member", "")
	f.Add("dns+https://u:", "@h")
	f.Add("http://h/?token=", "#x")
	f.Fuzz(func(t *testing.T, before, after string) {
		text := before + secret + after
		_ = Check(text)
		if got, ok := strings.CutPrefix(text, "dns+"); Check(text) == nil && !ok {
			if u, err := url.Parse(got); err != nil || u.Host == "" {
				t.Errorf("%q is accepted: %v, %v", text, u, err)
			}
		}
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		password, _ := u.User.Password()
		if hidden := strings.Contains(password+u.User.Username()+u.RawQuery+u.Fragment, secret); hidden && strings.Contains(Shown(text), secret) &&
			!strings.Contains(u.Host+u.Path+u.Opaque+u.Scheme, secret) {
			t.Errorf("%q is shown as %q", text, Shown(text))
		}
	})
}

const secret = "s3cretw0rd"
