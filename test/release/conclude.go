package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"text/template"
)

// sums is the file of all checksums. Only its signature is not in it.
const sums = "SHA256SUMS"

// conclude writes the files about all artifacts: formula, expression, provenance, checksums, and
// with a key the signature.
func (r *release) conclude(key string) error {
	digests := map[string]string{}
	for _, a := range r.artifacts {
		sum, err := digest(filepath.Join(r.into, a.file))
		if err != nil {
			return err
		}
		digests[a.file] = sum
	}
	for _, file := range []string{"tenure.rb", "tenure.nix"} {
		if err := r.recipe(file, digests); err != nil {
			return err
		}
	}
	if err := r.provenance(digests); err != nil {
		return err
	}
	if err := r.sum(); err != nil || key == "" {
		return err
	}
	_, err := output(r.into, nil, "ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", key, sums)
	return err
}

// recipe writes the formula of Homebrew or the expression of Nix, with the checksums of the
// archives.
func (r *release) recipe(file string, digests map[string]string) error {
	t, err := template.New(file+".tmpl").Option("missingkey=error").ParseFS(scripts, "files/"+file+".tmpl")
	if err != nil {
		return err
	}
	archives := map[string]string{} // by platform; without a digest if it was not built
	for _, p := range platforms {
		archives[p.String()] = digests[r.base(p)+".tar.gz"]
	}
	return r.save(file, func(w io.Writer) error {
		return t.Execute(w, map[string]any{
			"Number": r.number(), "Summary": summary, "Homepage": homepage, "License": license,
			"Download": homepage + "/releases/download/" + r.version, "Archives": archives,
		})
	})
}

// sum writes the checksums of all files, in the format of sha256sum.
func (r *release) sum() error {
	files, err := os.ReadDir(r.into)
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, f := range files {
		if f.Name() == sums || f.Name() == sums+".sig" {
			continue
		}
		sum, err := digest(filepath.Join(r.into, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, f.Name())
	}
	return os.WriteFile(filepath.Join(r.into, sums), list.Bytes(), 0o644)
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

type object = map[string]any

// provenance writes a statement of in-toto with SLSA's predicate: how the artifacts were built. The
// checksums cover it, and their signature.
func (r *release) provenance(digests map[string]string) error {
	var subjects []object
	for _, file := range sorted(digests) {
		subjects = append(subjects, object{"name": file, "digest": object{"sha256": digests[file]}})
	}
	goversion, err := r.golang(host, "env", "GOVERSION")
	if err != nil {
		return err
	}
	statement, err := json.MarshalIndent(object{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          homepage + "/blob/" + r.version + "/docs/install.md#build-it-again",
				"externalParameters": object{"version": r.version},
				"internalParameters": object{"flags": buildFlags},
				"resolvedDependencies": []object{
					{"uri": "git+" + homepage + "@refs/tags/cmd/" + r.version, "digest": object{"gitCommit": r.commit}},
					{"name": "go", "uri": "https://go.dev/dl/#" + goversion},
				},
			},
			"runDetails": object{"builder": object{"id": homepage + "/blob/" + r.version + "/.ci/release"}},
		},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.into, name+"_"+r.number()+"_provenance.json"), append(statement, '\n'), 0o644)
}

// table prints the sizes.
func (r *release) table(w io.Writer, binaries map[platform]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	size := func(label, path string) error {
		info, err := os.Stat(path)
		if err == nil {
			fmt.Fprintf(t, "%s\t%.1f MB\n", label, float64(info.Size())/1e6)
		}
		return err
	}
	for _, p := range platforms {
		if binaries[p] == "" {
			continue
		}
		if err := size("binary "+p.String(), binaries[p]); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, a := range r.artifacts {
		if seen[a.file] {
			continue
		}
		seen[a.file] = true
		if err := size(a.file, filepath.Join(r.into, a.file)); err != nil {
			return err
		}
	}
	return t.Flush()
}
