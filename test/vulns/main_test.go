package main

import (
	"strings"
	"testing"
)

const config = `{"config": {"protocol_version": "v1.0.0"}}`

// finding returns one of a module, whose function is empty if the program does not reach it.
func finding(id, module, fixed, function string) string {
	return `{"finding": {"osv": "` + id + `", "fixed_version": "` + fixed + `", "trace": [{"module": "` + module +
		`", "version": "v1.0.0", "package": "p", "function": "` + function + `"}]}}`
}

// TestReport: only a vulnerability that is reached and that a newer module mends fails the gate.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, in   string
		gate, soak bool
		says       string
	}{
		{"none", "", true, true, "0 known"},
		{"not reached", finding("GO-1", "example.com/m", "v1.0.1", ""), true, true, "0 known"},
		{"a module", finding("GO-1", "example.com/m", "v1.0.1", "F"), false, false, "GO-1: example.com/m v1.0.0, fixed in v1.0.1: p.F"},
		{"a module without a newer version", finding("GO-1", "example.com/m", "", "F"), true, false, "attention: 1 known vulnerabilities that no version mends"},
		{
			"the standard library", finding("GO-1", stdlib, "v1.26.10", "F") + finding("GO-2", stdlib, "v1.26.9", "G"), true, false,
			"attention: 2 known vulnerabilities of the standard library: build with go1.26.10 or newer",
		},
		{"both", finding("GO-1", stdlib, "v1.26.9", "F") + finding("GO-2", "example.com/m", "v1.0.1", "G"), false, false, "go1.26.9"},
		{"one at two places", finding("GO-1", "example.com/m", "v1.0.1", "F") + finding("GO-1", "example.com/m", "v1.0.1", "G"), false, false, "\n1 known"},
	} {
		all, err := read(strings.NewReader(config + c.in))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var out, quiet strings.Builder
		if got := report(&out, all, true); got != c.gate {
			t.Errorf("%s: the gate passes: %v", c.name, got)
		}
		if got := report(&quiet, all, false); got != c.soak {
			t.Errorf("%s: the soak passes: %v", c.name, got)
		}
		if !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %s", c.name, out.String())
		}
	}
}

// TestNoAnswer: an output without its beginning is no answer.
func TestNoAnswer(t *testing.T) {
	for _, in := range []string{"", "govulncheck: no database", finding("GO-1", "m", "", "F")} {
		if _, err := read(strings.NewReader(in)); err == nil {
			t.Errorf("%q is an answer", in)
		}
	}
}
