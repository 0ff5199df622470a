//go:build unix

package guarded

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

// Find returns the file of a command as a shell would, or an error and its exit code. As far as
// possible it detects, before this process campaigns, that the system cannot execute the file.
func Find(name string) (path string, code int, err error) {
	path, err = exec.LookPath(name)
	switch {
	case err == nil:
	case errors.Is(err, exec.ErrDot):
		return "", CodeNotFound, errors.New(name + ": is in the current directory; give it as ./" + name)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return "", CodeNotFound, errors.New(fault.Shown(name) + ": no such command")
	default:
		return "", CodeNotRunnable, err
	}
	if err := interpretable(path); err != nil {
		return "", CodeNotRunnable, fmt.Errorf("%s: %w", name, err)
	}
	return path, 0, nil
}

// explained adds to an error the reason why the system cannot execute a command, if Find detects
// it.
func explained(path string, e *guard.StartError) *guard.StartError {
	if e.Passing {
		return e
	}
	if _, code, err := Find(path); err != nil {
		return &guard.StartError{Text: err.Error(), Missing: code == CodeNotFound}
	}
	return e
}

// interpretable returns an error if the interpreter of a file is missing: that of a script's first
// line, or the loader of a program with shared libraries. It returns nil for a file that cannot be
// read, as the system may still execute it.
func interpretable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	interpreter := shebang(f)
	if interpreter == "" {
		interpreter = loader(f)
	}
	if interpreter == "" {
		return recognized(f)
	}
	switch s, err := os.Stat(interpreter); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("its interpreter %q does not exist", interpreter)
	case err == nil && (s.IsDir() || s.Mode()&0o111 == 0):
		return fmt.Errorf("its interpreter %q cannot be executed", interpreter)
	}
	return nil
}

// shebangBytes is the part of the first line that Linux reads.
const shebangBytes = 256

// shebang returns the interpreter of a script, or an empty text for other files.
func shebang(f *os.File) string {
	line, _ := bufio.NewReader(io.NewSectionReader(f, 0, shebangBytes)).ReadString('\n')
	line, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "#!")
	if words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }); is && len(words) > 0 {
		return words[0]
	}
	return ""
}

// recognized returns an error for a file that Linux would not execute. A shell would run it as a
// script.
func recognized(f *os.File) error {
	head := make([]byte, len(elf.ELFMAG))
	_, _ = f.ReadAt(head, 0)
	if runtime.GOOS != "linux" || string(head) == elf.ELFMAG || otherFormats() {
		return nil
	}
	return errors.New("it is not a program, and its first line names no interpreter, such as #!/bin/sh")
}

// otherFormats reports whether this system executes other formats of files too (binfmt_misc).
func otherFormats() bool {
	entries, _ := os.ReadDir("/proc/sys/fs/binfmt_misc")
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != "register" && e.Name() != "status" })
}

// loader returns the loader of a program, or an empty text if it needs none or is no program.
func loader(f *os.File) string {
	e, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			name, _ := io.ReadAll(io.LimitReader(p.Open(), 4096))
			return strings.TrimRight(string(name), "\x00")
		}
	}
	return ""
}
