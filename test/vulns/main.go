// Command vulns judges the answers of govulncheck, which it reads as JSON from standard input. Only
// vulnerable functions count that the program reaches. .ci/vulns runs it.
//
//	govulncheck -format json ... | go run ./test/vulns         any vulnerability fails
//	govulncheck -format json ... | go run ./test/vulns -gate   only one that a newer module mends
//
// With -gate, the vulnerabilities of the standard library, which another version of Go mends, and
// those that no version mends, pass with a line that begins with "attention:". The exit code is 1
// if a vulnerability fails, and 2 if there is no answer.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/version"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	gate := flag.Bool("gate", false, "let those pass that no newer module mends")
	flag.Parse()
	all, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulns:", err)
		os.Exit(2)
	}
	if !report(os.Stdout, all, *gate) {
		os.Exit(1)
	}
}

// vulnerability is one that the program reaches.
type vulnerability struct {
	id, module, version string
	fixed               string // the version that mends it, or empty
	symbol              string // one of the functions
}

// stdlib is the module of the standard library in the database.
const stdlib = "stdlib"

// message is a part of govulncheck's output, which begins with its configuration.
type message struct {
	Config  *struct{}
	Finding *struct {
		OSV   string
		Fixed string `json:"fixed_version"`
		Trace []struct{ Module, Version, Package, Function string }
	}
}

// read returns each vulnerability once, in the order of the names.
func read(in io.Reader) ([]vulnerability, error) {
	found, answered := map[string]vulnerability{}, false
	for d := json.NewDecoder(in); ; {
		var m message
		err := d.Decode(&m)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("govulncheck's output is no JSON: %w", err)
		}
		answered = answered || m.Config != nil
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "" {
			at := f.Trace[0]
			found[f.OSV] = vulnerability{f.OSV, at.Module, at.Version, f.Fixed, at.Package + "." + at.Function}
		}
	}
	if !answered {
		return nil, errors.New("govulncheck gave no answer")
	}
	return slices.SortedFunc(maps.Values(found), func(a, b vulnerability) int { return strings.Compare(a.id, b.id) }), nil
}

// report prints the vulnerabilities, and reports whether the program passes.
func report(out io.Writer, all []vulnerability, gate bool) bool {
	failing, unmended, ofGo, mends := 0, 0, 0, ""
	for _, v := range all {
		fixed := v.fixed
		if fixed == "" {
			fixed = "no version"
		}
		fmt.Fprintf(out, "%s: %s %s, fixed in %s: %s\n", v.id, v.module, v.version, fixed, v.symbol)
		switch {
		case v.fixed == "":
			unmended++
		case v.module == stdlib:
			ofGo++
			if release := "go" + strings.TrimPrefix(v.fixed, "v"); version.Compare(release, mends) > 0 {
				mends = release
			}
		default:
			failing++
		}
	}
	mark := ""
	if gate {
		mark = "attention: "
	}
	if ofGo > 0 {
		fmt.Fprintf(out, "%s%d known vulnerabilities of the standard library: build with %s or newer\n", mark, ofGo, mends)
	}
	if unmended > 0 {
		fmt.Fprintf(out, "%s%d known vulnerabilities that no version mends\n", mark, unmended)
	}
	fmt.Fprintf(out, "%d known vulnerabilities that a newer module mends\n", failing)
	return failing == 0 && (gate || ofGo+unmended == 0)
}
