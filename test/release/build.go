package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// versions are those that each format of packages can state and order: apk knows only some names of
// versions before a release.
var versions = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\d+)?$`)

// open clones the tags, and returns a release of the command's tag.
func open(version, from, proxy, work, into string) (*release, error) {
	if !versions.MatchString(version) {
		return nil, fmt.Errorf("the version is %q: use one such as v0.1.0 or v0.1.0-rc1", version)
	}
	r := &release{version: version, tree: filepath.Join(work, "tree")}
	for _, path := range []*string{&from, &into} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = absolute
	}
	r.into = into
	if err := os.MkdirAll(into, 0o755); err != nil {
		return nil, err
	}
	goproxy, err := proxies(proxy)
	if err != nil {
		return nil, err
	}
	if _, err := output(work, nil, "git", "clone", "-q", "--branch", "cmd/"+version, from, r.tree); err != nil {
		return nil, fmt.Errorf("make the tags with .ci/release first: %w", err)
	}
	at, err := output(r.tree, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	commit, seconds, _ := strings.Cut(at, " ")
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	r.commit, r.time = commit, time.Unix(epoch, 0).UTC()

	// Tags that were made again would not replace modules in the usual cache.
	r.env = []string{
		"GOMODCACHE=" + filepath.Join(work, "modules"), "GONOSUMDB=" + module + "/*," + module,
		"GOPROXY=" + goproxy,
		"GOWORK=off", "GOFLAGS=", "GOEXPERIMENT=", "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"SOURCE_DATE_EPOCH=" + seconds,
	}
	return r, nil
}

// proxies returns the value of GOPROXY: first the modules of the release, then those of other
// projects that the usual cache has.
func proxies(own string) (string, error) {
	cached, err := output("", nil, "go", "env", "GOMODCACHE")
	if err != nil {
		return "", err
	}
	upstream, err := output("", nil, "go", "env", "GOPROXY")
	all := "file://" + cached + "/cache/download," + upstream
	if err != nil || own == "" {
		return all, err
	}
	own, err = filepath.Abs(own)
	return "file://" + own + "," + all, err
}

// build builds the program, and checks that it states its version and its commit.
func (r *release) build(p platform, into string) error {
	if _, err := r.golang(p, append([]string{"build", "-o", into}, append(buildFlags, "./tenure")...)...); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(into)
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if info.Main.Version != r.version || settings["vcs.revision"] != r.commit || settings["vcs.modified"] != "false" {
		return fmt.Errorf("the program says version %s of commit %s, modified %s; want %s of %s",
			info.Main.Version, settings["vcs.revision"], settings["vcs.modified"], r.version, r.commit)
	}
	for _, dep := range info.Deps {
		if strings.HasPrefix(dep.Path, module) && (dep.Version != r.version || dep.Replace != nil) {
			return fmt.Errorf("the program has %s %s, not of this release", dep.Path, dep.Version)
		}
	}
	return os.Chtimes(into, r.time, r.time)
}

// golang runs the go command in the module of the command, for a platform.
func (r *release) golang(p platform, args ...string) (string, error) {
	return output(filepath.Join(r.tree, "cmd"), append(r.env, "GOOS="+p.os, "GOARCH="+p.arch), "go", args...)
}

// output runs a command, and returns its trimmed output.
func output(dir string, env []string, command string, args ...string) (string, error) {
	c := exec.Command(command, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", command, strings.Join(args, " "), err, errs.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
