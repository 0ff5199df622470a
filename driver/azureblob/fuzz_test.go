package azureblob

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzParseSecret: no error of a file of credentials shows a part of it, and a secret that is
// accepted is complete.
func FuzzParseSecret(f *testing.F) {
	f.Add("DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5;EndpointSuffix=core.windows.net")
	f.Add("https://acc.blob.core.windows.net/c?sv=1&sig=abc&se=2026-01-01")
	f.Add("BlobEndpoint=http://h:1/acc;SharedAccessSignature=?sig=x")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseSecret(text)
		if err != nil {
			if err.Error() != errNoSecret.Error() {
				t.Errorf("the error of %q shows more: %v", text, err)
			}
			return
		}
		if s.sas == "" && (s.key == "" || s.account == "") {
			t.Errorf("%q is accepted as an incomplete secret %+v", text, s)
		}
		_ = ends(s.sas)
		store := &Store{}
		if endpoint, err := store.locate(settings{}, s); err == nil {
			if _, err := url.Parse(endpoint.String()); err != nil || endpoint.Host == "" || endpoint.User != nil {
				t.Errorf("%q leads to the endpoint %q", text, endpoint)
			}
		} else if s.key != "" && len(s.key) > 8 && !strings.Contains(s.endpoint+s.account, s.key) && strings.Contains(err.Error(), s.key) {
			t.Errorf("the error shows the key: %v", err)
		}
	})
}

// FuzzClaims: no header of a refusal makes the parser panic.
func FuzzClaims(f *testing.F) {
	f.Add(`Bearer error="insufficient_claims", claims="e30="`)
	f.Add(`claims="`)
	f.Fuzz(func(_ *testing.T, challenge string) { _ = claims(challenge) })
}
