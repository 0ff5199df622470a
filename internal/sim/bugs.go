package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/overlay"
)

// bug is a change to the text of the source that leaves out a rule. The simulation must notice it.
// The source itself has no trace of it.
type bug struct {
	Name string
	Rule string
	Left string // says what is left out, or what the code does instead
	Edit []edit
	// Shows is a regular expression that matches the faults that this bug causes. Other faults do
	// not count.
	Shows string
	// Test is the deterministic test that fails with a bug that too few seeds show. Note explains
	// why. In is the directory of the test, if it is not internal/protocol.
	Test, Note, In string
}

type edit struct{ File, Old, New string }

// verdict is the result of a run over several seeds, as one process sends it to another.
type verdict struct {
	Ran, Failed, First uint64
	Fault              string
	Others             uint64 // seeds that failed with a fault that does not match Shows
	Other              string
	Led                float64 // the part of the time in which there was a leader
}

// enough is the number of standard seeds that must find a bug by the faults in Shows.
const enough = 5

func findBug(name string) (bug, error) {
	for _, b := range planted {
		if b.Name == name {
			return b, nil
		}
	}
	return bug{}, fmt.Errorf("there is no bug %q; -bugs lists them", name)
}

// root returns the directory of the module.
func root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// build compiles this program with the bug in it. The binary and all files for it are in dir.
func (b *bug) build(dir string) (binary string, err error) {
	top, err := root()
	if err != nil {
		return "", err
	}
	list, err := b.plant(top, dir)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "sim")
	cmd := exec.Command("go", "build", "-overlay", list, "-ldflags=-s -w", "-o", binary, "./internal/sim")
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("bug %s: %w\n%s", b.Name, err, out)
	}
	return binary, nil
}

// plant writes the changed files into dir, and the list of them for go build.
func (b *bug) plant(top, dir string) (list string, err error) {
	var edits []overlay.Edit
	for _, e := range b.Edit {
		edits = append(edits, overlay.Edit(e))
	}
	list, err = overlay.Write(filepath.Join(top, "internal"), dir, edits)
	if err != nil {
		return "", fmt.Errorf("bug %s: %w", b.Name, err)
	}
	return list, nil
}

// hunt builds the bug and runs seeds 1 to n on one core. Without all it ends at the first seed that
// finds the bug. A bug may make the machine loop endlessly, which counts as found too.
func (b *bug) hunt(seeds uint64, all bool) (verdict, error) {
	dir, err := os.MkdirTemp("", "tenure-bug-")
	if err != nil {
		return verdict{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := b.build(dir)
	if err != nil {
		return verdict{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "-seeds", strconv.FormatUint(seeds, 10), "-json", "-all="+strconv.FormatBool(all), "-shows", b.Shows)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return verdict{Ran: 1, Failed: 1, First: 1, Fault: "it never ends"}, nil
	}
	var v verdict
	if json.Unmarshal(out, &v) != nil {
		return verdict{}, fmt.Errorf("bug %s: %w\n%s", b.Name, err, out)
	}
	return v, nil
}

// fails runs the deterministic test with the bug, and reports whether the test notices.
func (b *bug) fails() (verdict, error) {
	top, err := root()
	if err != nil {
		return verdict{}, err
	}
	dir, err := os.MkdirTemp("", "tenure-bug-")
	if err != nil {
		return verdict{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	list, err := b.plant(top, dir)
	if err != nil {
		return verdict{}, err
	}
	pattern := "^" + strings.ReplaceAll(b.Test, "/", "$/^") + "$"
	cmd := exec.Command("go", "test", "-count=1", "-overlay", list, "-run", pattern, "./"+cmp.Or(b.In, "internal/protocol"))
	cmd.Dir = top
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return verdict{}, nil
	case !strings.Contains(string(out), "--- FAIL"):
		return verdict{}, fmt.Errorf("bug %s: %w\n%s", b.Name, err, out)
	}
	return verdict{Failed: 1, Fault: b.Test}, nil
}

// replay runs this program with the bug in it, in place of this process.
func replay(name string, args ...string) int {
	b, err := findBug(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	dir, err := os.MkdirTemp("", "tenure-bug-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary, err := b.build(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Printf("%s (%s): %s\n", b.Name, b.Rule, b.Left)
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if cmd.Run() != nil {
		return 1
	}
	return 0
}
