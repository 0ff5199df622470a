//go:build integration

package recipes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
)

const (
	unitFile   = "deploy/systemd/billing.service"
	dropIn     = "deploy/systemd/billing.service.d/kafka.conf"
	unitTenure = "/usr/local/bin/tenure"
)

// values returns all values of one name in a unit.
func values(t *testing.T, file, name string) []string {
	t.Helper()
	options, err := unit.DeserializeOptions(strings.NewReader(text(t, file)))
	must(t, err)
	var all []string
	for _, o := range options {
		if o.Name == name {
			all = append(all, o.Value)
		}
	}
	return all
}

// value returns the only value.
func value(t *testing.T, file, name string) string {
	t.Helper()
	all := values(t, file, name)
	if len(all) != 1 {
		t.Fatalf("%s is set %d times", name, len(all))
	}
	return all[0]
}

// service returns the unit as a recipe. Words that systemd would replace must be known here.
func service(t *testing.T) recipe {
	t.Helper()
	stop, err := time.ParseDuration(value(t, unitFile, "TimeoutStopSec"))
	must(t, err)
	return recipe{name: unitFile, args: startOf(t, unitFile), stop: stop}
}

// startOf returns the arguments with which a unit starts tenure.
func startOf(t *testing.T, file string) []string {
	t.Helper()
	line := strings.ReplaceAll(value(t, file, "ExecStart"), "%H", "host-1")
	if strings.ContainsAny(line, `"'\$%;@`) {
		t.Fatalf("%s is more than words", line)
	}
	words := strings.Fields(line)
	if words[0] != unitTenure {
		t.Fatalf("%s does not start %s", line, unitTenure)
	}
	return words[1:]
}

func TestUnitStopsTenureAlone(t *testing.T) {
	for name, want := range map[string]string{
		// control-group would signal the program a second time, and process would leave other
		// processes behind.
		"KillMode":        "mixed",
		"OOMPolicy":       "continue", // the other processes end the term
		"LimitRTPRIO":     "1",        // the guard kills in time
		"NoNewPrivileges": "yes",      // the parent-death signal lasts
		"Restart":         "always",
	} {
		if got := value(t, unitFile, name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
}

// analyze runs systemd-analyze and returns its output.
func analyze(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("systemd-analyze is missing; on Debian: apt-get install systemd")
	}
	var out bytes.Buffer
	c := exec.Command(command, args...)
	c.Stdout, c.Stderr = &out, &out
	c.Env = append(os.Environ(), "SYSTEMD_LOG_COLOR=0", "SYSTEMD_PAGER=")
	err = c.Run()
	return out.String(), err
}

// laidOut puts a unit into its own directory, with a program that exists in place of tenure, and
// returns the unit's path.
func laidOut(t *testing.T, file string, withDropIn bool) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
		return path
	}
	if withDropIn {
		write("billing.service.d/kafka.conf", text(t, dropIn))
	}
	return write(filepath.Base(file), strings.ReplaceAll(text(t, file), unitTenure, self))
}

// systemd ignores unknown settings and reports them. Any report is a mistake.
func TestSystemdAcceptsAllUnitSettings(t *testing.T) {
	verify := func(file string, withDropIn bool) {
		t.Helper()
		out, err := analyze(t, "verify", "--man=no", "--recursive-errors=no", laidOut(t, file, withDropIn))
		if err != nil || out != "" {
			t.Errorf("%s, drop-in %t: %v\n%s", file, withDropIn, err, out)
		}
	}
	verify(unitFile, false)
	verify(unitFile, true)
	verify(dashboardUnit, false)
}

// These are the system calls of the guard and of the Go runtime in the groups that users often
// leave out.
func TestUnitFilterAllowsTheSystemCallsOfTheGuard(t *testing.T) {
	allowed := map[string]bool{}
	var add func(group string)
	add = func(group string) {
		out, err := analyze(t, "syscall-filter", group)
		if err != nil {
			t.Fatalf("%s: %v\n%s", group, err, out)
		}
		for line := range strings.Lines(out) {
			switch name := strings.TrimSpace(line); {
			case name == group || strings.HasPrefix(name, "#"):
			case strings.HasPrefix(name, "@"):
				add(name)
			default:
				allowed[name] = true
			}
		}
	}
	for group := range strings.FieldsSeq(value(t, unitFile, "SystemCallFilter")) {
		add(group)
	}
	for _, call := range []string{
		"timer_create", "timer_settime", "timer_delete", "prctl", "fcntl", "socketpair", "pipe2", "setpgid", "clone", "clone3", "vfork",
		"execve", "kill", "tgkill", "wait4", "waitid", "pidfd_open", "pidfd_send_signal", "rt_sigaction", "clock_gettime", "getdents64",
	} {
		if !allowed[call] {
			t.Errorf("%s is not allowed", call)
		}
	}
	if slices.Contains(values(t, unitFile, "SystemCallFilter"), "") {
		t.Error("an empty filter allows everything")
	}
}
