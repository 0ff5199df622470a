package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure/internal/overlay"
)

// standard is the number of seeds that a bug has to be found in, and of a run without a name.
const standard = 120

// bug is a change to the text of the source that leaves out a rule.
type bug struct {
	Name, Rule, Left string
	Edit             []overlay.Edit
	// Shows is a regular expression that matches the faults that this bug causes.
	Shows string
	// Test is the test of package ticks that fails with the bug, if seeds rarely show it.
	Test string
}

// planted calls do with a go command that sees the bug in the source.
func (b *bug) planted(do func(run overlay.Tool, dir string) error) error {
	if err := overlay.Plant("internal/ticks", b.Edit, do); err != nil {
		return fmt.Errorf("bug %s: %w", b.Name, err)
	}
	return nil
}

// built calls do with the path of this program with the bug in it.
func (b *bug) built(do func(binary string) error) error {
	return b.planted(func(run overlay.Tool, dir string) error {
		binary := filepath.Join(dir, "ticksim")
		if out, err := run("build", "-o", binary, "./internal/ticksim").CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return do(binary)
	})
}

// find returns how the bug shows: a seed and its fault, or the test that fails.
func (b *bug) find() (where string, err error) {
	if b.Test != "" {
		err = b.planted(func(run overlay.Tool, _ string) error {
			out, err := run("test", "-count=1", "-run", "^"+b.Test+"$", "./internal/ticks").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL") {
				return fmt.Errorf("%s passes with it, or does not build\n%s", b.Test, out)
			}
			return nil
		})
		return b.Test, err
	}
	var v verdict
	err = b.built(func(binary string) error {
		out, err := exec.Command(binary, "-json", "-shows", b.Shows, "-seeds", fmt.Sprint(standard)).Output()
		if err != nil {
			return err
		}
		return json.Unmarshal(out, &v)
	})
	if err == nil && v.Failed == 0 {
		err = fmt.Errorf("bug %s: no seed of %d shows %q", b.Name, v.Seeds, b.Shows)
	}
	return fmt.Sprintf("seed %d: %s", v.First, v.Fault), err
}

// hunt plants each bug, and prints how it shows.
func hunt(out io.Writer) (status int) {
	for i := range planted {
		b := &planted[i]
		where, err := b.find()
		if err != nil {
			where, status = "NOT FOUND: "+err.Error(), 1
		}
		fmt.Fprintf(out, "%s (%s): %s\n\t%s\n", b.Name, b.Rule, b.Left, where)
	}
	return status
}

// replay runs this program, with the bug in it, in place of this process.
func replay(name string, args ...string) int {
	for i := range planted {
		b := &planted[i]
		if b.Name != name {
			continue
		}
		if b.Test != "" {
			where, err := b.find()
			fmt.Println(b.Left, where, err)
			return 0
		}
		err := b.built(func(binary string) error {
			cmd := exec.Command(binary, args...)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			return cmd.Run()
		})
		fmt.Println(b.Left, err)
		return 0
	}
	fmt.Fprintf(os.Stderr, "no bug %q\n", name)
	return 2
}
