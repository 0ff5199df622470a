// Package planted has the bugs that the simulation and the exploration must find: each leaves out a
// rule of the protocol.
package planted

import (
	"fmt"
	"path/filepath"

	"github.com/tenure-go/tenure/internal/overlay"
)

// Bug is a change to the text of the source that leaves out a rule. The source itself has no trace
// of it.
type Bug struct {
	Name string
	Rule string
	Left string // says what is left out, or what the code does instead
	Edit []Edit
	// Shows is a regular expression that matches the faults that this bug causes in the simulation.
	// Other faults do not count.
	Shows string
	// Test is the deterministic test that fails with a bug that too few seeds show. Note explains
	// why. In is the directory of the test, if it is not internal/protocol.
	Test, Note, In string
}

// Edit is one change to a file below the directory internal.
type Edit struct{ File, Old, New string }

// Find returns the bug of a name.
func Find(name string) (Bug, error) {
	for _, b := range All {
		if b.Name == name {
			return b, nil
		}
	}
	return Bug{}, fmt.Errorf("there is no bug %q; go run ./internal/sim -bugs lists them", name)
}

// Plant calls do with a go command that sees the bug in the source, and an empty directory.
func (b *Bug) Plant(do func(run overlay.Tool, dir string) error) error {
	var edits []overlay.Edit
	for _, e := range b.Edit {
		edits = append(edits, overlay.Edit(e))
	}
	if err := overlay.Plant("internal", edits, do); err != nil {
		return fmt.Errorf("bug %s: %w", b.Name, err)
	}
	return nil
}

// Build calls do with the path of a program of this module that has the bug. The program is its
// directory, such as ./internal/sim.
func (b *Bug) Build(program string, do func(binary string) error) error {
	return b.Plant(func(run overlay.Tool, dir string) error {
		binary := filepath.Join(dir, "planted")
		if out, err := run("build", "-ldflags=-s -w", "-o", binary, program).CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return do(binary)
	})
}
