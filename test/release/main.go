// Command release makes the artifacts of a release from its tags: archives, packages, an image, and
// for each a list of its components, then checksums, provenance, a formula for Homebrew and an
// expression for Nix. It publishes nothing. .ci/release calls it.
//
//	go run . -from CLONE -proxy DIR -into DIR v0.1.0
//
// CLONE has the tags. The proxy has the modules of these tags, until they are published. With the
// same version of Go, the same tags give the same files, byte by byte.
//
// goreleaser, in its free edition, does not know versions of modules below the top of a repository,
// and needs a server or Docker for images. So this program composes the libraries that goreleaser
// itself uses for packages, with others for images and lists of components.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// release holds the tag, and the directories.
type release struct {
	version string // such as v0.1.0
	commit  string
	time    time.Time // of the commit; every file has it
	tree    string    // a clone at the tag of the command
	into    string
	env     []string // for the go command

	artifacts []artifact
}

// artifact is a file that users download.
type artifact struct {
	file     string
	platform platform
	binary   string // its program; empty for files about other artifacts
}

func main() {
	from := flag.String("from", "", "a clone with the tags of the release")
	proxy := flag.String("proxy", "", "a module proxy, a directory, with the modules of the release; empty if they are published")
	into := flag.String("into", "", "the directory for the artifacts")
	only := flag.String("only", "", "build only these platforms, such as linux_amd64,darwin_arm64")
	key := flag.String("key", "", "sign the checksums with this SSH key")
	flag.Parse()
	if flag.NArg() != 1 || *from == "" || *into == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *from, *proxy, *into, *only, *key); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(version, from, proxy, into, only, key string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "tenure-release-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	r, err := open(version, from, proxy, work, into)
	if err != nil {
		return err
	}
	binaries := map[platform]string{}
	for _, p := range chosen {
		binaries[p] = filepath.Join(work, p.String(), p.program())
		if err := r.build(p, binaries[p]); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	texts, err := r.texts(work, binaries[host])
	if err != nil {
		return err
	}
	for _, p := range chosen {
		if err := r.pack(p, binaries[p], texts); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := r.images(binaries); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	if err := r.describe(); err != nil {
		return err
	}
	if err := r.conclude(key); err != nil {
		return err
	}
	return r.table(os.Stdout, binaries)
}

// choose returns the platforms of -only, or all of them.
func choose(only string) ([]platform, error) {
	if only == "" {
		return platforms, nil
	}
	var chosen []platform
	for _, p := range platforms {
		for wanted := range strings.SplitSeq(only, ",") {
			if wanted == p.String() {
				chosen = append(chosen, p)
			}
		}
	}
	if len(chosen) != strings.Count(only, ",")+1 {
		return nil, fmt.Errorf("-only is %s; the platforms are %v", strconv.Quote(only), platforms)
	}
	return chosen, nil
}

// removeAll also removes directories of a module cache, which are read-only.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
