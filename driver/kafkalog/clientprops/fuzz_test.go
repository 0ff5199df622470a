package clientprops

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzOptions: no value of a property is in an error, unless it is also a part of a name or of a
// remedy, and each problem has a remedy.
func FuzzOptions(f *testing.F) {
	f.Add("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=", "")
	f.Add("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=x.PlainLoginModule required username=\"u\" password=\"", "\";")
	f.Add("security.protocol=SSL\nssl.keystore.key=", "\nssl.keystore.certificate.chain=-----BEGIN CERTIFICATE-----")
	f.Add("bootstrap.servers=a:1,", "\nacks=all\nmetadata.max.age.ms=1")
	const secret = "s3cret-w0rd"
	f.Fuzz(func(t *testing.T, before, after string) {
		given := map[string]string{}
		for line := range strings.SplitSeq(before+secret+after, "\n") {
			// Files are left alone: the fuzzer must not read any.
			if name, value, ok := strings.Cut(line, "="); ok && !strings.Contains(name, "location") && !strings.Contains(name, secret) {
				given[name] = value
			}
		}
		before0 := maps.Clone(given)
		_, _, err := parse(given)
		if !maps.Equal(before0, given) {
			t.Error("the properties are changed")
		}
		if err == nil {
			return
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error shows a secret: %v", given, err)
		}
		var p *Problem
		if !errors.As(err, &p) || p.Fault == "" || p.Remedy == "" {
			t.Errorf("%q: no remedy in %v", given, err)
		}
	})
}

// FuzzJAAS: what a quoted entry says is read as it is, and a text that is read has a module.
func FuzzJAAS(f *testing.F) {
	f.Add(`x.PlainLoginModule required username="u" password='p\'q';`, "user", `pa"ss\word`)
	f.Add(`x required ;`, "", "")
	f.Fuzz(func(t *testing.T, text, user, password string) {
		if e, err := parseJAAS(text); err == nil && e.options == nil {
			t.Errorf("%q is read as %+v", text, e)
		}
		quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
		e, err := parseJAAS(`m.M required username="` + quote(user) + `" password="` + quote(password) + `";`)
		if err != nil || e.options["username"] != user || e.options["password"] != password || len(slices.Collect(maps.Keys(e.options))) != 2 {
			t.Errorf("%q and %q are read as %+v, %v", user, password, e, err)
		}
	})
}
