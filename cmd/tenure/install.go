package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

const aboutInstall = `Copies this program to PATH, or into PATH if that is a directory. An init container so copies it out
of an image that has no shell. A file that exists there is replaced at once: a reader sees the old
file or the new one, and programs that run the old file go on. The copy has mode 0755.

The object of --json has file, the path of the copy.`

func newInstall() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "install PATH",
		Short:   "Copy this program to a path",
		Long:    aboutInstall,
		Example: `  tenure install /opt/tenure/tenure`,
		Args:    cli.OneArg,
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := cli.Fill(c.Flags(), os.Getenv, nil); err != nil {
				return err
			}
			path, err := install(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				output.JSON(c.OutOrStdout(), struct {
					File string `json:"file"`
				}{path})
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the path of the copy, as a JSON object")
	return c
}

// fileName is the name of the copy in a directory.
var fileName = map[bool]string{false: "tenure", true: "tenure.exe"}[runtime.GOOS == "windows"]

// install copies the running program, and returns the path of the copy.
func install(path string) (string, error) {
	self := runningFile()
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path = filepath.Join(path, fileName)
		info, err = os.Stat(path)
	}
	running, selfErr := os.Stat(self)
	switch {
	case selfErr != nil:
		return "", fault.New("run the program from a file that this user may read", "the running program cannot be read: %w", selfErr)
	case err == nil && !info.Mode().IsRegular():
		return "", fault.New("name another path", "%s is not a file that can be replaced", path)
	case err == nil && os.SameFile(info, running):
		return path, nil
	}
	if err := copyProgram(self, path); err != nil {
		hint := "name a path on a file system that this user may write"
		if errors.Is(err, os.ErrNotExist) {
			hint = "make the directory first, or mount a volume there"
		}
		return "", fault.New(hint, "cannot install %s: %w", path, err)
	}
	return path, nil
}

// runningFile returns a path of the file that this process runs: on Linux also if another file has
// replaced it.
func runningFile() string {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self
	}
	if found, err := os.Executable(); err == nil {
		return found
	}
	return os.Args[0]
}

// copyProgram writes the copy beside its path and renames it when it is whole and on the disk.
func copyProgram(from, path string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	_, err = io.Copy(out, in)
	if err = cmp.Or(err, out.Chmod(0o755), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("after a part was written: %w", err)
	}
	return os.Rename(out.Name(), path)
}
