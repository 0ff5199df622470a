package sqlstore

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver/seal"
)

// FuzzParseNotification: a payload counts only if its seal is that of its key and value.
func FuzzParseNotification(f *testing.F) {
	f.Add("billing\n" + seal.New("billing", []byte("{}")) + "\n12\nera\n" + base64.StdEncoding.EncodeToString([]byte("{}")))
	f.Add("billing")
	f.Add("\n\n\n\n\n\n")
	f.Fuzz(func(t *testing.T, payload string) {
		key, e, err := ParseNotification(payload)
		if !strings.HasPrefix(payload, key) || strings.Contains(key, "\n") {
			t.Fatalf("the key of %q is %q", payload, key)
		}
		if err != nil {
			return
		}
		v := parseVersion(e.Version)
		if !e.Unverified || v.version() != e.Version || !seal.Unbroken(v.stamp, key, e.Value) || len(e.Value) > len(payload) {
			t.Errorf("%q is read as %+v", payload, e)
		}
	})
}
