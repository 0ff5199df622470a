package sqltable

import (
	"strings"
	"testing"
)

// FuzzClientFile: only the section client counts, and names have dashes.
func FuzzClientFile(f *testing.F) {
	f.Add("[client]\nuser = 'a'\nssl_ca=/ca.pem\n[mysqld]\nport=1\n")
	f.Add("[client\n=x\n")
	f.Fuzz(func(t *testing.T, text string) {
		settings := parseClientFile(text)
		if len(settings) > 0 && !strings.Contains(text, "client") {
			t.Errorf("%q has the settings %q", text, settings)
		}
		for name := range settings {
			if strings.Contains(name, "_") || strings.TrimSpace(name) != name {
				t.Errorf("%q has the name %q", text, name)
			}
		}
		if got := parseClientFile("[client]\npassword=x\n[other]\n" + strings.ReplaceAll(text, "[", "")); len(got) != 1 {
			t.Errorf("the section other counts: %q", got)
		}
	})
}
