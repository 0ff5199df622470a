package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([-_.]|$)`)

// isLicense reports whether a file has this name that a license obliges to pass on.
func isLicense(file string) bool {
	return licenseName.MatchString(file) && filepath.Ext(file) != ".go"
}

// linked is a package of the program, as go list prints it.
type linked struct {
	Dir      string
	Standard bool
	Module   *struct{ Path, Version, Dir string }
}

// licenses returns the licenses and notices of everything that the program of a platform contains.
// It fails for a module without a license.
func (r *release) licenses(p platform) ([]byte, error) {
	listed, err := r.golang(p, "list", "-deps", buildTags, "-json=Dir,Standard,Module", "./tenure")
	if err != nil {
		return nil, err
	}
	goroot, err := r.golang(p, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	goversion, err := r.golang(p, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]bool{"Go standard library " + goversion: {filepath.Join(goroot, "LICENSE"): true}}
	for decoder := json.NewDecoder(strings.NewReader(listed)); ; {
		var l linked
		if err := decoder.Decode(&l); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if l.Standard || l.Module == nil || strings.HasPrefix(l.Module.Path, module) {
			continue
		}
		title := l.Module.Path + " " + l.Module.Version
		if found[title] == nil {
			found[title] = map[string]bool{}
		}
		if err := above(l.Dir, l.Module.Dir, found[title]); err != nil {
			return nil, err
		}
	}
	return together(found)
}

// above adds the licenses in the directory of a package, and in those up to the top of its module.
func above(dir, top string, files map[string]bool) error {
	for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && isLicense(e.Name()) {
				files[filepath.Join(dir, e.Name())] = true
			}
		}
	}
	return nil
}

// together returns one text, sorted by module.
func together(found map[string]map[string]bool) ([]byte, error) {
	var b bytes.Buffer
	for _, title := range sorted(found) {
		if len(found[title]) == 0 {
			return nil, fmt.Errorf("%s has no license: do not link it", title)
		}
		for _, file := range sorted(found[title]) {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&b, "%s\n%s: %s\n\n%s\n\n", strings.Repeat("=", 80), title, filepath.Base(file), bytes.TrimSpace(content))
		}
	}
	return b.Bytes(), nil
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
