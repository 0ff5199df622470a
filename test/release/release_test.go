//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var wanted = flag.String("only", "", "build only these platforms")

const version = "v0.0.1-rc1"

// made is what TestMain builds once, with a build of the same tags in another directory.
var made struct{ files, again, proxy string }

// TestMain makes the tags and the artifacts. Each test examines them.
func TestMain(m *testing.M) {
	flag.Parse()
	work, err := os.MkdirTemp("", "tenure-release-test-")
	if err == nil {
		err = makeRelease(work)
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	removeAll(work)
	os.Exit(code)
}

func makeRelease(work string) error {
	clone, first := filepath.Join(work, "clone"), filepath.Join(work, "first")
	made.files, made.again, made.proxy = filepath.Join(first, "files"), filepath.Join(work, "second"), filepath.Join(first, "proxy")
	key := filepath.Join(work, "key")
	for _, c := range [][]string{
		{"git", "clone", "-q", "../..", clone},
		{"git", "-C", clone, "config", "user.name", "release"},
		{"git", "-C", clone, "config", "user.email", "release@localhost"},
		{"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release", "-f", key},
		{filepath.Join(clone, ".ci", "release"), version, first, "-only", *wanted, "-key", key},
		{"git", "clone", "-q", clone, filepath.Join(work, "elsewhere")},
		{"go", "-C", filepath.Join(clone, "test", "release"), "run", ".", "-from", filepath.Join(work, "elsewhere"), "-proxy", made.proxy, "-into", made.again, "-only", *wanted, version},
	} {
		run := exec.Command(c[0], c[1:]...)
		run.Stdout, run.Stderr = os.Stdout, os.Stderr
		if err := run.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(c, " "), err)
		}
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(work, "signers"), append([]byte("release "), public...), 0o644)
}

// TestReproducible: two builds of the same tags in different directories are the same files.
func TestReproducible(t *testing.T) {
	first, second := digests(t, made.files), digests(t, made.again)
	delete(first, sums+".sig")
	if len(first) < 8 {
		t.Errorf("only %v", first)
	}
	if !maps.Equal(first, second) {
		t.Errorf("the first build has\n%v\nthe second\n%v", first, second)
	}
}

func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	all := map[string]string{}
	for _, e := range entries {
		all[e.Name()], err = digest(filepath.Join(dir, e.Name()))
		must(t, err)
	}
	return all
}

// TestVerifies follows docs/install.md: the signature, then the checksums. A changed file fails.
func TestVerifies(t *testing.T) {
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(made.files)))
	verify := func() error {
		list, err := os.ReadFile(filepath.Join(dir, sums))
		must(t, err)
		c := exec.Command("ssh-keygen", "-Y", "verify", "-f", filepath.Join(made.files, "../../signers"), "-I", "release", "-n", "file", "-s", sums+".sig")
		c.Dir, c.Stdin = dir, bytes.NewReader(list)
		if said, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		_, err = output(dir, nil, "sha256sum", "--check", "--strict", sums)
		return err
	}
	must(t, verify())
	appended(t, filepath.Join(dir, "tenure.rb"))
	if verify() == nil {
		t.Error("a changed formula passes")
	}
	appended(t, filepath.Join(dir, sums))
	if verify() == nil {
		t.Error("changed checksums pass")
	}
}

func appended(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("\n")
	must(t, err)
	must(t, f.Close())
}

// TestDebian installs the package in a clean Debian, runs it, and removes it.
func TestDebian(t *testing.T) {
	root := filepath.Join(t.TempDir(), "debian")
	t.Cleanup(func() { removeAll(root) })
	said(t, "debootstrap", "--variant=minbase", "bookworm", root)
	before := tree(t, root)
	must(t, os.Link(packageOf(t, "deb"), filepath.Join(root, "tenure.deb")))
	said(t, "chroot", root, "dpkg", "--install", "/tenure.deb")
	isOfRelease(t, said(t, "chroot", root, "/usr/bin/tenure", "version"))
	if names := said(t, "chroot", root, "dpkg", "--verify", "tenure"); names != "" {
		t.Errorf("dpkg finds changed files:\n%s", names)
	}
	unitIsValid(t, root)
	must(t, os.Remove(filepath.Join(root, "tenure.deb")))

	said(t, "chroot", root, "dpkg", "--remove", "tenure")
	want := append(slices.Clone(before), "/etc/tenure", "/etc/tenure/dashboard.env", "/var/lib/dpkg/info/tenure.list", "/var/lib/dpkg/info/tenure.postrm")
	left(t, root, want)
	said(t, "chroot", root, "dpkg", "--purge", "tenure")
	left(t, root, before)
}

// left compares the files with those that should be left.
func left(t *testing.T, root string, want []string) {
	t.Helper()
	for _, path := range tree(t, root) {
		if !slices.Contains(want, path) {
			t.Errorf("%s is left", path)
		}
	}
	for _, path := range want {
		if _, err := os.Lstat(filepath.Join(root, path)); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
}

// tree returns the paths of all files and directories, without dpkg's backups and logs of its own.
func tree(t *testing.T, root string) (paths []string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		path = strings.TrimPrefix(path, root)
		if !strings.HasSuffix(path, "-old") && !strings.HasPrefix(path, "/var/log/") {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// unitIsValid has systemd check the unit of a package, beside the units of this machine.
func unitIsValid(t *testing.T, root string) {
	t.Helper()
	const units, unit, program = "usr/lib/systemd/system", "tenure-dashboard.service", "usr/bin/tenure"
	machine := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(machine, "usr/bin"), 0o755))
	must(t, os.MkdirAll(filepath.Join(machine, "usr/lib/systemd"), 0o755))
	said(t, "cp", "-a", "/"+units, filepath.Join(machine, "usr/lib/systemd"))
	said(t, "cp", filepath.Join(root, units, unit), filepath.Join(machine, units))
	said(t, "cp", filepath.Join(root, program), filepath.Join(machine, program))
	verify := func() string {
		out, _ := exec.Command("systemd-analyze", "verify", "--root="+machine, unit).CombinedOutput()
		return strings.Join(regexp.MustCompile(`(?m)^.*tenure.*$`).FindAllString(string(out), -1), "\n")
	}
	if faults := verify(); faults != "" {
		t.Errorf("systemd says:\n%s", faults)
	}
	must(t, os.Remove(filepath.Join(machine, program)))
	if verify() == "" {
		t.Error("systemd does not miss the program")
	}
}

// TestRPM installs the package in an empty directory with a database of its own, and removes it.
// Its scripts do not run: the directory has no shell.
func TestRPM(t *testing.T) {
	root, file := t.TempDir(), packageOf(t, "rpm")
	said(t, "rpm", "-K", "--nosignature", file)
	if !strings.Contains(said(t, "rpm", "-qp", "--scripts", file), "tenure-dashboard.service") {
		t.Error("the package has no scripts")
	}
	said(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "--nodeps", "--noscripts", "--nosignature", "-i", file)
	isOfRelease(t, said(t, filepath.Join(root, "usr/bin/tenure"), "version"))
	said(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "--nodeps", "--noscripts", "-V", "tenure")
	unitIsValid(t, root)
	must(t, os.WriteFile(filepath.Join(root, "etc/tenure/dashboard.env"), []byte("TENURE_STORE=sqlite:x\n"), 0o600))
	said(t, "rpm", "--root", root, "--dbpath", "/var/lib/rpm", "--nodeps", "--noscripts", "-e", "tenure")
	for _, path := range tree(t, root) {
		info, err := os.Lstat(filepath.Join(root, path))
		must(t, err)
		if !info.IsDir() && !strings.HasPrefix(path, "/var/lib/rpm/") && path != "/etc/tenure/dashboard.env.rpmsave" {
			t.Errorf("%s is left", path)
		}
	}
}

// TestAPK unpacks the package, which is three archives in a row: this machine has no apk.
func TestAPK(t *testing.T) {
	root := t.TempDir()
	said(t, "tar", "--warning=no-unknown-keyword", "-xzf", packageOf(t, "apk"), "-C", root)
	isOfRelease(t, said(t, filepath.Join(root, "usr/bin/tenure"), "version"))
	unitIsValid(t, root)
	info, err := os.ReadFile(filepath.Join(root, ".PKGINFO"))
	must(t, err)
	for _, line := range []string{"pkgname = tenure\n", "arch = x86_64\n", "license = " + license + "\n", "pkgver = 0.0.1_rc1\n"} {
		if !strings.Contains(string(info), line) {
			t.Errorf("no line %q in\n%s", line, info)
		}
	}
	for _, script := range []string{".post-install", ".post-upgrade", ".pre-deinstall", ".post-deinstall"} {
		said(t, "sh", "-n", filepath.Join(root, script))
	}
}

// TestImage runs the image's program as process 1 of a root that has only the layers of the image.
func TestImage(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	said(t, "tar", "-xf", filepath.Join(made.files, "tenure_0.0.1-rc1_image.tar"), "-C", dir)
	config := unpack(t, dir, root, "amd64")
	if config.Config.User != user || len(config.Config.Entrypoint) != 1 || config.Config.Labels["org.opencontainers.image.version"] != "0.0.1-rc1" {
		t.Errorf("the image has the configuration %+v", config)
	}
	must(t, os.Mkdir(filepath.Join(root, "proc"), 0o755))
	must(t, os.Mkdir(filepath.Join(root, "volume"), 0o777))
	must(t, os.Chmod(filepath.Join(root, "volume"), 0o777))
	within := func(args ...string) (string, error) {
		return output(root, nil, "unshare", append([]string{"--pid", "--fork", "--mount-proc=" + root + "/proc",
			"chroot", "--userspec=" + config.Config.User, root, config.Config.Entrypoint[0]}, args...)...)
	}
	out, err := within("version")
	must(t, err)
	isOfRelease(t, out)
	_, err = within("install", "/volume")
	must(t, err)
	isOfRelease(t, said(t, filepath.Join(root, "volume/tenure"), "version"))
	if _, err := within("install", "/tenure2"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("another user than root installs at the top: %v", err)
	}
	for zone, known := range map[string]bool{"Europe/Berlin": true, "Nowhere/No": false} {
		_, err := within("cron", "--store", "nats://127.0.0.1:1/E", "--connect-timeout", "1s", "--election", "e",
			"--schedule", "0 0 * * *", "--timezone", zone, "--", "/tenure", "version")
		if err == nil || strings.Contains(err.Error(), "--timezone is ") == known {
			t.Errorf("the time zone %s: %v", zone, err)
		}
	}
	certificates, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
	must(t, err)
	if n := bytes.Count(certificates, []byte("BEGIN CERTIFICATE")); n < 100 {
		t.Errorf("the image has %d certificates", n)
	}
}

type config struct {
	Config struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
}

// unpack unpacks the layers of an architecture, and returns its configuration.
func unpack(t *testing.T, dir, root, arch string) (c config) {
	t.Helper()
	type descriptor struct {
		Digest   string
		Platform struct{ Architecture string }
	}
	blob := func(digest string) string {
		return filepath.Join(dir, "blobs", strings.Replace(digest, ":", "/", 1))
	}
	read := func(path string, into any) {
		text, err := os.ReadFile(path)
		must(t, err)
		must(t, json.Unmarshal(text, into))
	}
	var top, index struct{ Manifests []descriptor }
	read(filepath.Join(dir, "index.json"), &top)
	read(blob(top.Manifests[0].Digest), &index)
	for _, m := range index.Manifests {
		if m.Platform.Architecture != arch {
			continue
		}
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		read(blob(m.Digest), &manifest)
		read(blob(manifest.Config.Digest), &c)
		for _, layer := range manifest.Layers {
			said(t, "tar", "-xzf", blob(layer.Digest), "-C", root)
		}
		return c
	}
	t.Fatalf("no image for %s in %v", arch, index)
	return c
}

// TestComponents: each artifact has a list of components, with its checksum and its modules.
func TestComponents(t *testing.T) {
	all := digests(t, made.files)
	lists := 0
	for file := range all {
		if !strings.HasSuffix(file, ".cdx.json") {
			continue
		}
		lists++
		text, err := os.ReadFile(filepath.Join(made.files, file))
		must(t, err)
		var list struct {
			SerialNumber string
			Metadata     struct {
				Component struct{ Name, Version string }
			}
			Components []struct{ Name, Version string }
		}
		must(t, json.Unmarshal(text, &list))
		if !bytes.Contains(text, []byte(all[list.Metadata.Component.Name])) || len(list.Components) < 20 || list.SerialNumber != "" {
			t.Errorf("%s is about %q, has %d components and the number %q", file, list.Metadata.Component.Name, len(list.Components), list.SerialNumber)
		}
		if !slices.ContainsFunc(list.Components, func(c struct{ Name, Version string }) bool { return c.Name == module && c.Version == version }) {
			t.Errorf("%s lacks the core of this version", file)
		}
	}
	if lists < 5 {
		t.Errorf("%d lists", lists)
	}
}

// TestRecipes: Ruby and Nix can parse the formula and the expression, which have the checksums.
func TestRecipes(t *testing.T) {
	said(t, "ruby", "-c", filepath.Join(made.files, "tenure.rb"))
	said(t, "nix-instantiate", "--parse", filepath.Join(made.files, "tenure.nix"))
	sum := digests(t, made.files)["tenure_0.0.1-rc1_linux_amd64.tar.gz"]
	for _, file := range []string{"tenure.rb", "tenure.nix"} {
		text, err := os.ReadFile(filepath.Join(made.files, file))
		must(t, err)
		if len(sum) != 64 || !bytes.Contains(text, []byte(sum)) {
			t.Errorf("%s lacks the checksum %s", file, sum)
		}
	}
}

func packageOf(t *testing.T, format string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(made.files, "tenure*[_.]"+map[string]string{"deb": "amd64", "rpm": "x86_64", "apk": "x86_64"}[format]+"."+format))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v for %s: %v", found, format, err)
	}
	return found[0]
}

func isOfRelease(t *testing.T, said string) {
	t.Helper()
	if !regexp.MustCompile(`^tenure version ` + regexp.QuoteMeta(version) + ` commit [0-9a-f]{40} go`).MatchString(said) {
		t.Errorf("the version is %q", said)
	}
}

// said returns the output of a command that succeeds.
func said(t *testing.T, command string, args ...string) string {
	t.Helper()
	out, err := output("", nil, command, args...)
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
