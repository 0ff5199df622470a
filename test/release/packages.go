package main

import (
	"bytes"
	"embed"
	"io"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // registers the format
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// formats are those of packages for Linux.
var formats = []string{"deb", "rpm", "apk"}

// scripts has the scripts of packages and their configuration.
//
//go:embed files
var scripts embed.FS

// packed is a file of a package. Packages of all formats have it unless only is set.
type packed struct {
	entry
	only string
	kind string
}

// contents returns the files of a package. Debian's zsh looks for completions elsewhere.
func (r *release) contents(program []entry, t *texts) ([]packed, error) {
	const doc = "/usr/share/doc/tenure/"
	env, err := scripts.ReadFile("files/dashboard.env")
	if err != nil {
		return nil, err
	}
	unit, err := r.read("deploy/systemd/tenure-dashboard.service")
	if err != nil {
		return nil, err
	}
	example, err := r.read("deploy/systemd/billing.service")
	if err != nil {
		return nil, err
	}
	all := []packed{
		{entry: entry{"/usr/bin/tenure", program[0].content, 0o755}},
		{entry: entry{doc + "copyright", program[1].content, 0o644}},
		{entry: entry{doc + "THIRD-PARTY-LICENSES", program[2].content, 0o644}},
		{entry: entry{"/usr/lib/systemd/system/tenure-dashboard.service", inUsr(unit), 0o644}},
		{entry: entry{doc + "examples/billing.service", inUsr(example), 0o644}},
		{entry: entry{"/etc/tenure/dashboard.env", env, 0o600}, kind: files.TypeConfigNoReplace},
		{entry: entry{"/usr/share/bash-completion/completions/tenure", t.completions["bash"], 0o644}},
		{entry: entry{"/usr/share/fish/vendor_completions.d/tenure.fish", t.completions["fish"], 0o644}},
		{entry: entry{"/usr/share/zsh/vendor-completions/_tenure", t.completions["zsh"], 0o644}, only: "deb"},
		{entry: entry{"/usr/share/zsh/site-functions/_tenure", t.completions["zsh"], 0o644}, only: "rpm"},
		{entry: entry{"/usr/share/zsh/site-functions/_tenure", t.completions["zsh"], 0o644}, only: "apk"},
	}
	for _, page := range t.manual {
		content, err := compressed(page.content)
		if err != nil {
			return nil, err
		}
		all = append(all, packed{entry: entry{"/usr/share/man/man1/" + page.path + ".gz", content, 0o644}})
	}
	return all, nil
}

// inUsr names the program where packages put it.
func inUsr(unit []byte) []byte {
	return bytes.ReplaceAll(unit, []byte("/usr/local/bin/tenure"), []byte("/usr/bin/tenure"))
}

// makePackage makes a package.
func (r *release) makePackage(format string, p platform, binary string, program []entry, t *texts) error {
	all, err := r.contents(program, t)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tenure-package-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	info := &nfpm.Info{
		Name: name, Arch: p.arch, Platform: p.os, Version: r.version, Section: "admin", Priority: "optional",
		Maintainer: maintainer, Description: summary + "\n" + about, Homepage: homepage, License: license,
		MTime: r.time, DisableGlobbing: true,
	}
	if format == "apk" { // its metadata have one line for each field
		info.Description = summary
	}
	info.RPM.BuildHost, info.RPM.Summary = "localhost", summary
	info.Contents = files.Contents{{Destination: "/etc/tenure", Type: files.TypeDir, FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: r.time}}}
	for _, f := range all {
		from := filepath.Join(work, f.path)
		if err := write(from, f.content); err != nil {
			return err
		}
		info.Contents = append(info.Contents, &files.Content{
			Source: from, Destination: f.path, Type: f.kind, Packager: f.only,
			FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: r.time, Owner: "root", Group: "root"},
		})
	}
	for name, field := range map[string]*string{
		"postinstall.sh": &info.Scripts.PostInstall, "preremove.sh": &info.Scripts.PreRemove, "postremove.sh": &info.Scripts.PostRemove,
	} {
		script, err := scripts.ReadFile("files/" + name)
		if err != nil {
			return err
		}
		*field = filepath.Join(work, name)
		if err := write(*field, script); err != nil {
			return err
		}
		if err := os.Chtimes(*field, r.time, r.time); err != nil { // apk packs the time of the file
			return err
		}
	}
	info.APK.Scripts.PostUpgrade = info.Scripts.PostInstall
	return r.writePackage(format, nfpm.WithDefaults(info), p, binary)
}

func (r *release) writePackage(format string, info *nfpm.Info, p platform, binary string) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	file := packager.ConventionalFileName(info)
	r.artifacts = append(r.artifacts, artifact{file, p, binary})
	return r.save(file, func(w io.Writer) error { return packager.Package(info, w) })
}

// write writes a file and makes the directories above it.
func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
