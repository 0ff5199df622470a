package kafkatopic

import (
	"strings"
	"testing"
)

// FuzzProperties: no file of properties makes the parser panic, and its error shows none of it.
func FuzzProperties(f *testing.F) {
	f.Add([]byte("bootstrap.servers = a:1,\\\n  b:2\n# x\nsasl.password=\\u0041${HOME}\n"))
	f.Add([]byte("a=\\u00"))
	f.Add([]byte("a=${a}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseProperties(text)
		if err != nil {
			if err.Error() != "is not a file of properties" {
				t.Errorf("%q: the error shows more: %v", text, err)
			}
			return
		}
		k := &Place{Properties: all, origins: map[string]string{}}
		k.fromEnvironment(func(string) string { return "" })
		logIn(k.Properties, "u", "p")
		if k.Properties["sasl.username"] != "u" || strings.EqualFold(k.Properties["security.protocol"], "PLAINTEXT") {
			t.Errorf("%q logs in as %q over %q", text, k.Properties["sasl.username"], k.Properties["security.protocol"])
		}
	})
}
