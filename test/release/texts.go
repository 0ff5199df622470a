package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// texts are the files beside the program that are the same on all platforms.
type texts struct {
	manual      []entry // tenure.1 and so on
	completions map[string][]byte
}

// shells are those that tenure completion knows.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// texts has the program write its manual pages and completions. If the release has no binary for
// this machine, it builds one.
func (r *release) texts(work, binary string) (*texts, error) {
	if binary == "" {
		binary = filepath.Join(work, host.String(), host.program())
		if err := r.build(host, binary); err != nil {
			return nil, err
		}
	}
	pages := filepath.Join(work, "man")
	if _, err := output(work, r.env, binary, "man", pages); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	t := &texts{completions: map[string][]byte{}}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(pages, f.Name()))
		if err != nil {
			return nil, err
		}
		t.manual = append(t.manual, entry{f.Name(), content, 0o644})
	}
	for _, shell := range shells {
		script, err := output(work, r.env, binary, "completion", shell)
		if err != nil {
			return nil, err
		}
		t.completions[shell] = []byte(script + "\n")
	}
	return t, nil
}

// read returns a file of the tree.
func (r *release) read(path string) ([]byte, error) { return os.ReadFile(filepath.Join(r.tree, path)) }

// pack makes the archive of a platform, and on Linux the packages.
func (r *release) pack(p platform, binary string, t *texts) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	own, err := r.read("LICENSE")
	if err != nil {
		return err
	}
	others, err := r.licenses(p)
	if err != nil {
		return err
	}
	files := []entry{{p.program(), program, 0o755}, {"LICENSE", own, 0o644}, {"THIRD-PARTY-LICENSES", others, 0o644}}
	if err := r.archive(p, binary, files, t); err != nil {
		return err
	}
	if p.os != "linux" {
		return nil
	}
	for _, format := range formats {
		if err := r.makePackage(format, p, binary, files, t); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return nil
}

// archive makes the archive of a platform, with one directory at the top.
func (r *release) archive(p platform, binary string, files []entry, t *texts) error {
	files = slices.Clone(files)
	for _, shell := range shells {
		files = append(files, entry{"completions/" + name + "." + shell, t.completions[shell], 0o644})
	}
	for _, page := range t.manual {
		files = append(files, entry{"man/man1/" + page.path, page.content, page.mode})
	}
	for i := range files {
		files[i].path = r.base(p) + "/" + files[i].path
	}
	extension, write := ".tar.gz", tarred
	if p.os == "windows" {
		extension, write = ".zip", zipped
	}
	file := r.base(p) + extension
	r.artifacts = append(r.artifacts, artifact{file, p, binary})
	return r.save(file, func(w io.Writer) error { return write(w, r.time, files) })
}

// save makes a file of the release.
func (r *release) save(file string, write func(io.Writer) error) error {
	out, err := os.Create(filepath.Join(r.into, file))
	if err != nil {
		return err
	}
	err = write(out)
	return cmp.Or(err, out.Close())
}
