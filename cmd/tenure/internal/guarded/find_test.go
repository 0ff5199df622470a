//go:build unix

package guarded

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guard"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"runs": 0o755, "plain": 0o644} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode))
	}
	for name, text := range map[string]string{
		"broken": "#!/no/such/interpreter -x\n", "windows": "#!/bin/sh\r\n", "directory": "#! " + dir + "\n", "spaced": "#! /bin/sh -e\n",
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	t.Setenv("PATH", dir+":.")
	t.Chdir(t.TempDir())
	must.OK(t, os.WriteFile("here", []byte("#!/bin/sh\n"), 0o755))
	for _, c := range []struct {
		name, path, err string
		code            int
	}{
		{"runs", dir + "/runs", "", 0},
		{dir + "/runs", dir + "/runs", "", 0},
		{"./here", "./here", "", 0},
		{"here", "", "here: is in the current directory; give it as ./here", CodeNotFound},
		{"missing", "", "missing: no such command", CodeNotFound},
		{dir + "/missing", "", "missing: no such command", CodeNotFound},
		{dir + "/plain", "", "permission denied", CodeNotRunnable},
		{dir, "", "is a directory", CodeNotRunnable},
		{"broken", "", `broken: its interpreter "/no/such/interpreter" does not exist`, CodeNotRunnable},
		{"directory", "", "cannot be executed", CodeNotRunnable},
		{"spaced", dir + "/spaced", "", 0},
		{"windows", "", `its interpreter "/bin/sh\r" does not exist`, CodeNotRunnable},
	} {
		path, code, err := Find(c.name)
		if path != c.path || code != c.code || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %d, %v", c.name, path, code, err)
		}
	}
}

// A dynamically linked program whose loader is missing is explained like a script.
func TestMissingLoader(t *testing.T) {
	if loader := loaderOf(t, "/bin/sh"); loader == "" {
		t.Skip("here /bin/sh needs none")
	} else if _, _, err := Find("/bin/sh"); err != nil {
		t.Errorf("%s: %v", loader, err)
	} else {
		program, err := os.ReadFile("/bin/sh")
		must.OK(t, err)
		path := filepath.Join(t.TempDir(), "sh")
		other := strings.Replace(string(program), loader, strings.Repeat("x", len(loader)), 1)
		must.OK(t, os.WriteFile(path, []byte(other), 0o755))
		if _, code, err := Find(path); code != CodeNotRunnable || err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("got %d, %v", code, err)
		}
	}
}

func loaderOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	must.OK(t, err)
	defer func() { _ = f.Close() }()
	return loader(f)
}

// A shell would run it, but tenure is not a shell.
func TestScriptWithoutAnInterpreterLine(t *testing.T) {
	if runtime.GOOS != "linux" || otherFormats() {
		t.Skip("this system may know other formats")
	}
	for name, text := range map[string]string{"plain": "echo up\n", "empty": "", "bare": "#!\n"} {
		path := filepath.Join(t.TempDir(), name)
		must.OK(t, os.WriteFile(path, []byte(text), 0o755))
		if _, code, err := Find(path); code != CodeNotRunnable || err == nil || !strings.Contains(err.Error(), "names no interpreter") {
			t.Errorf("%s: got %d, %v", name, code, err)
		}
	}
}

// A script whose interpreter was removed after the first check exists, although the system reports
// that there is no such file.
func TestInterpreterRemovedLater(t *testing.T) {
	script := filepath.Join(t.TempDir(), "job")
	must.OK(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700))
	e := explained(script, &guard.StartError{Text: "no such file or directory", Missing: true})
	if e.Missing || !strings.Contains(e.Text, `its interpreter "/no/such/interpreter" does not exist`) {
		t.Errorf("got %+v", e)
	}
	if e := explained("/bin/sh", &guard.StartError{Text: "no room", Passing: true}); !e.Passing {
		t.Errorf("got %+v", e)
	}
}
