// Package overlay builds programs with planted mistakes, so that other programs can prove that
// their checks notice them. The source files stay as they are: go build -overlay replaces them by
// changed copies.
package overlay

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Edit is one change to the text of a file.
type Edit struct {
	// File is the path below the directory top of Write, with slashes.
	File string
	// Old must occur in the file exactly once. New replaces it.
	Old, New string
}

// Write writes the changed files into dir and returns the path of the file for go build -overlay.
// It fails if an edit does not fit the present source below top.
func Write(top, dir string, edits []Edit) (list string, err error) {
	changed := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(top, filepath.FromSlash(e.File))
		text, ok := changed[path]
		if !ok {
			source, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			text = string(source)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("%s holds this text %d times, not once:\n%s", e.File, n, e.Old)
		}
		changed[path] = strings.Replace(text, e.Old, e.New, 1)
	}
	return write(dir, changed)
}

// Tool returns a go command that sees the changed files. It runs in the directory of the module.
type Tool func(command string, args ...string) *exec.Cmd

// Plant calls do with a go command that sees the edits, and with a directory that it removes at the
// end. The edited files are below top, a directory of the present module, with slashes.
func Plant(top string, edits []Edit, do func(run Tool, dir string) error) error {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return err
	}
	module := filepath.Dir(strings.TrimSpace(string(out)))
	dir, err := os.MkdirTemp("", "tenure-bug-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	list, err := Write(filepath.Join(module, filepath.FromSlash(top)), dir, edits)
	if err != nil {
		return err
	}
	return do(func(command string, args ...string) *exec.Cmd {
		cmd := exec.Command("go", append([]string{command, "-overlay", list}, args...)...)
		cmd.Dir = module
		return cmd
	}, dir)
}

func write(dir string, changed map[string]string) (list string, err error) {
	replace := map[string]string{}
	for path, text := range changed {
		copied := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[path] = copied
	}
	encoded, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, encoded, 0o600)
}
