//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// typed returns the commands that users type, without those that only explain and without those of
// the command library.
func typed() []*cobra.Command {
	return slices.DeleteFunc(newRoot().Commands(), func(c *cobra.Command) bool {
		return c.Hidden || c.Name() == "stores" || c.Name() == "help" || c.Name() == "completion"
	})
}

// runs reports whether a command runs another one.
func runs(c *cobra.Command) bool { return slices.Contains([]string{"run", "cron", "tick"}, c.Name()) }

// usageCode returns the exit code of a wrong command line. It is none of those of a command that is
// run.
func usageCode(c *cobra.Command) int {
	if runs(c) {
		return 125
	}
	return 2
}

func TestEveryCommandHasHelpAndJSON(t *testing.T) {
	for _, c := range typed() {
		if c.Long == "" || c.Flags().Lookup("json") == nil {
			t.Errorf("%s: no help, or no --json", c.Name())
		}
	}
}

// Each command takes TENURE_* for a flag that is not given. An error names the variable.
func TestEveryCommandTakesItsFlagsFromTheEnvironment(t *testing.T) {
	t.Setenv("TENURE_JSON", "maybe")
	for _, c := range typed() {
		args := []string{c.Name()}
		if c.Name() == "man" || c.Name() == "install" || runs(c) {
			args = append(args, t.TempDir())
		}
		usage := usageCode(c)
		code, errs := answers(t, args...)
		if code != usage || !strings.HasPrefix(errs, `error: TENURE_JSON is "maybe", not true or false`) {
			t.Errorf("%s: exit code %d, %s", c.Name(), code, errs)
		}
	}
}

func TestEveryCommandRefusesUnknownFlags(t *testing.T) {
	for _, c := range append(typed(), newRoot()) {
		args := []string{c.Name(), "--nothing"}
		if c.Name() == "tenure" {
			args = args[1:]
		}
		usage := usageCode(c)
		if code, errs := answers(t, args...); code != usage || !strings.HasPrefix(errs, "error: unknown flag: --nothing\n") {
			t.Errorf("%s: exit code %d, %s", c.Name(), code, errs)
		}
	}
}

func TestHelpNamesTheJSONFields(t *testing.T) {
	for command, object := range map[string]any{"jobs": jobState{}, "status": standing{}, "hand-over": step{}, "reset": replacement{}, "tick": tickJSON{}} {
		c, _, err := newRoot().Find([]string{command})
		must.OK(t, err)
		for _, field := range fieldsOf(reflect.TypeOf(object)) {
			if !regexp.MustCompile(`\b` + field + `\b`).MatchString(c.Long) {
				t.Errorf("%s of %s is not in its help", field, command)
			}
		}
	}
}

// fieldsOf returns the JSON names of an object's fields.
func fieldsOf(t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			all = append(all, fieldsOf(f.Type)...)
		case name != "":
			all = append(all, name)
		}
	}
	return all
}

// The error names only the source of each wrong value, and nothing that was not set.
func TestWrongValues(t *testing.T) {
	const at = " --store nats://127.0.0.1:1/E --election e "
	const cron = "cron" + at + "--schedule @daily "
	const kafka = "status --election e --store kafka://host/topic"
	type env map[string]string
	noRegion := env{"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": "none"}
	var schemes []string
	for _, k := range stores.Kinds() {
		for _, s := range k.Schemes {
			schemes = append(schemes, s.Name)
		}
	}
	known := strings.Join(schemes, ", ")
	for _, c := range []struct {
		why  string
		args string
		env  env
		want string // all lines with "error:", without that word
	}{
		{"one rule for 0", "run" + at + "--lease 0s", nil, "--lease is 0; it must be more than 0"},
		{"one rule for 0", "run" + at + "--renew 0", nil, "--renew is 0; it must be more than 0"},
		{"one rule for 0", "run" + at + "--stop-within 0", nil, "--stop-within is 0; it must be more than 0"},
		{"one rule for 0", "run" + at + "--finish-within 0", nil, "--finish-within is 0; it must be more than 0"},
		{"one rule for 0", "watch" + at + "--for 0", nil, "--for is 0; it must be more than 0"},
		{"one rule for 0", "reset" + at + "--lease 0 --force", nil, "--lease is 0; it must be more than 0"},
		{"by a variable", "run" + at, env{"TENURE_RENEW": "0s"}, "TENURE_RENEW is 0; it must be more than 0"},
		{"nothing lasts negatively", "run" + at + "--renew -1s", nil, "--renew is -1s; it must not be negative"},
		{"nothing lasts negatively", "run" + at + "--splay -1s", nil, "--splay is -1s; it must not be negative"},
		{"nothing lasts negatively", "run" + at + "--stop-within -1s", nil, "--stop-within is -1s; it must not be negative"},
		{"nothing lasts negatively", "status" + at + "--wait -1s", nil, "--wait is -1s; it must not be negative"},
		{"nothing lasts negatively", "hand-over" + at + "--wait -1s", nil, "--wait is -1s; it must not be negative"},
		{"force is for a name", "hand-over" + at + "--force", nil, "--force needs --to: without it, no candidate has to accept"},
		{"nothing lasts negatively", "status" + at + "--connect-timeout -1s", nil, "--connect-timeout is -1s; it must not be negative"},
		{"nothing lasts negatively", "watch" + at, env{"TENURE_FOR": "-1s"}, "TENURE_FOR is -1s; it must not be negative"},

		{"the lease alone", "run" + at + "--lease 2h", nil, "--lease is 2h0m0s; it must be from 500ms to 1h0m0s"},
		{"the lease alone", "reset" + at + "--lease 2h --force", nil, "--lease is 2h0m0s; it must be from 500ms to 1h0m0s"},
		{"the lease by a variable", "run" + at, env{"TENURE_LEASE": "1ms"}, "TENURE_LEASE is 1ms; it must be from 500ms to 1h0m0s"},
		{"the time to stop alone", "run" + at + "--lease 1s --stop-within 2s", nil, "--stop-within is 2s, too long for --lease 1s: it must be at most 619ms"},
		{"the time to stop alone", "run" + at + "--stop-within 1m", nil, "--stop-within is 1m0s, too long for the default lease of 15s: it must be at most 9.6s"},
		{"too short to stop in", "run" + at + "--stop-within 10ms", nil, "--stop-within is 10ms; it must be at least 100ms"},
		{"renewing alone", "run" + at + "--renew 14s", nil, "--renew is 14s, too long for the default lease of 15s: it must be at most 11.6s"},
		{"the time to finish", "run" + at + "--finish-within 25h", nil, "--finish-within is 25h0m0s; it must be from 1ms to 24h0m0s"},
		{"the priority", "run" + at + "--priority 10000000", nil, "--priority is 10000000, beyond ±1000000"},
		{"a floor", "run" + at + "--check-floor", nil, "--check-floor needs --check or --check-http"},
		{"a floor", "run" + at + "--check true --slots 2", env{"TENURE_CHECK_FLOOR": "true"}, "TENURE_CHECK_FLOOR must not be given with --slots"},
		{"a floor", "run" + at + "--check true --check-floor --priority -1000000", nil,
			"--check-floor needs a --priority above -1000000, which unfit candidates have"},
		{"a floor", "run --election e --store kafka://h/t?mode=neli --check true --check-floor", nil,
			"--check-floor works by priorities, and the nomination of the store's URL takes their place"},
		{"a floor", "agent --store nats://127.0.0.1:1/E --check true --check-floor", nil,
			"--check-floor is for tenure run: campaigns of an agent have priorities of their own"},

		{"the election by a variable", "run --store nats://127.0.0.1:1/E", env{"TENURE_ELECTION": "a b"},
			`TENURE_ELECTION cannot be a key of the store: natskv: key "a b" holds ' ': only letters, digits and -/_=. may be in a key`},
		{"the election by a variable", "status --store nats://127.0.0.1:1/E", env{"TENURE_ELECTION": "a b"},
			`TENURE_ELECTION cannot be a key of the store: natskv: key "a b" holds ' ': only letters, digits and -/_=. may be in a key`},
		{"no duration", "status" + at, env{"TENURE_WAIT": "soon"}, `TENURE_WAIT is "soon", not a time such as 500ms, 15s or 1h30m`},
		{"no number", "run" + at + "--priority x", nil, `--priority is "x", not a whole number`},
		{"no number that fits", "run" + at + "--priority 99999999999999999999", nil, `--priority is "99999999999999999999", which is out of range`},
		{"no duration", "watch" + at + "--for 5", nil, `--for is "5", not a time such as 500ms, 15s or 1h30m`},
		{"neither true nor false", "status" + at + "--json=maybe", nil, `--json is "maybe", not true or false`},
		{"an empty ID", "run" + at + "--id=", nil, "--id is empty"},
		{"an empty successor", "hand-over" + at + "--to=", nil, "--to is empty"},
		{"an empty election", "dashboard --store nats://127.0.0.1:1/E --election=", nil, "--election is empty"},
		{"a mode of TLS", "status --election e --store mysql://u@127.0.0.1:1/db?tls=x", nil,
			"--store mysql://u@127.0.0.1:1/db?tls=x: parameter tls: invalid value / unknown config name: x"},
		{"authorities of a database", "watch --election e --store mysql://u@127.0.0.1:1/db?ssl-ca=none", nil,
			"--store mysql://u@127.0.0.1:1/db?ssl-ca=none: ssl-ca: open none: no such file or directory"},
		{"a mode of TLS", "watch --election e --store postgres://u@127.0.0.1:1/db?sslmode=x", nil,
			"--store postgres://u@127.0.0.1:1/db?sslmode=x: failed to configure TLS (sslmode is invalid)"},
		{"the user of a database is no secret", "watch --election e --store postgres://bob:s3cret@127.0.0.1:1/db?sslmode=x", nil,
			"--store postgres://bob:***@127.0.0.1:1/db?sslmode=x: failed to configure TLS (sslmode is invalid)"},
		{"the date of a manual", "man /tmp/none", env{"SOURCE_DATE_EPOCH": "x"}, `SOURCE_DATE_EPOCH is "x", not a number`},
		{"an empty store", "status --election e --store=", nil, "--store is empty"},
		{"restarts", "run" + at + "--restart sometimes", nil, `--restart is "sometimes"; it must be never, on-failure or always`},
		{"jobs", "cron" + at, nil, "--schedule is missing"},
		{"jobs", "cron" + at + "--schedule @dayly", nil, `--schedule: schedule "@dayly": unrecognized descriptor: "@dayly"`},
		{"jobs", cron + "--timezone Berlin", nil, `--timezone is "Berlin"; it must be a name of the time zone database, such as Europe/Berlin`},
		{"jobs", cron + "--catch-up some", nil, `--catch-up is "some"; it must be last, none or all`},
		{"jobs", cron, env{"TENURE_OVERLAP": "both"}, `TENURE_OVERLAP is "both"; it must be skip or queue`},
		{"jobs", cron + "--job a/b", nil, `schedule: job "a/b": the name must have 1 to 64 letters, digits, hyphens, underscores and dots`},
		{"jobs", cron + "--job ..", nil, `--job is ".."; it must be a name with letters or digits`},
		{"jobs", cron + "--at-most-once --at-least-once", nil, "--at-least-once and --at-most-once contradict each other: give one of them"},
		{"jobs", cron + "--window 0", nil, "--window is 0; it must be more than 0"},
		{"jobs", cron + "--timeout -1s", nil, "--timeout is -1s; it must not be negative"},
		{"jobs", cron + "--clock-offset 1h", nil, "--clock-offset is 1h0m0s; it must be from 0 to 10 min"},
		{"jobs", cron + "--keep 3", nil, "--keep is for the files of --output, which is missing"},
		{"jobs", cron + "--output x --keep 0", nil, "--keep is 0; it must be at least 1"},
		{"jobs", "cron" + at + "--file x", nil, "there is a command, and --file names a file with commands: give one of them"},
		{"jobs", "jobs" + at + "--job=", nil, "--job is empty"},
		{"log level", "run" + at, env{"TENURE_LOG_LEVEL": "loud"}, `TENURE_LOG_LEVEL is "loud"; it must be debug, info, warn or error`},
		{"a store", "status --election e --store zk://h/E", nil, `--store "zk://***": unknown scheme; known are ` + known},
		{"a context", "status --election e --context prod/", nil, `--context "prod/": is neither NAME nor NAME/BUCKET`},
		{"a peer", "run --election e --store s3://bucket?region=r --peer x", nil, `--peer "x": is not HOST:PORT`},
		{"a bucket", "status --election e --store s3://ab", nil, `--store "s3://ab": no bucket can have the name "ab"`},
		{"no region", "status --election e --store s3://bucket", noRegion, "--store s3://bucket: no region is known, and requests are signed for one"},
		{"a bucket", "run --election e --store s3://my_bucket", nil, `--store "s3://my_bucket": no bucket can have the name "my_bucket"`},
		{"properties of Kafka", kafka, env{"TENURE_KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "TENURE_KAFKA_SASL_MECHANISM": "GSSAPI"},
			"TENURE_KAFKA_SASL_MECHANISM: sasl.mechanism is not supported: only PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 are"},
		{"properties of Kafka", kafka, env{"TENURE_KAFKA_SECURITY_PROTOCOL": "SSL", "TENURE_KAFKA_SSL_KEYSTORE_LOCATION": "."},
			"TENURE_KAFKA_SSL_KEYSTORE_LOCATION: ssl.keystore.location cannot be read: read .: is a directory"},
		{"metrics", "run" + at + "--metrics somewhere", nil, `--metrics "somewhere": the port is not a number from 0 to 65535`},
		{"metrics", "run" + at + "--metrics ::1:80", nil, `--metrics "::1:80": is not HOST:PORT`},
		{"metrics", "run" + at, env{"TENURE_METRICS": "localhost:99999"}, `TENURE_METRICS "localhost:99999": the port is not a number from 0 to 65535`},
		{"metrics", "run" + at + "--metrics-token-file x", nil, "--metrics-token-file needs --metrics"},
		{"metrics", "run" + at + "--metrics 0 --metrics-cert x", nil, "--metrics-cert and --metrics-key go together"},
		{"metrics", "run" + at + "--metrics 0 --metrics-cert none --metrics-key none", nil,
			"--metrics-cert none, --metrics-key none: open none: no such file or directory"},
		{"metrics", "run" + at + "--metrics 0 --metrics-cert main.go --metrics-key main.go", nil,
			"--metrics-cert main.go, --metrics-key main.go: tls: failed to find any PEM data in certificate input"},
		{"metrics", "run" + at + "--metrics 0 --metrics-token-file none", nil, "--metrics-token-file none: open none: no such file or directory"},
		{"metrics", "run" + at + "--metrics 0 --metrics-token-file main.go", nil, "--metrics-token-file main.go: the file does not hold one word"},
		{"authorities of peers", "run --election e --store s3://bucket?region=r --peer 127.0.0.1:0 --peer-ca none --peer-cert none --peer-key none", nil,
			"--peer-ca none: authorities: open none: no such file or directory"},
	} {
		t.Run(c.why+" "+c.args, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			args, want := strings.Fields(c.args), 2
			if args[0] == "run" || args[0] == "cron" {
				args, want = append(args, "--", "true"), 125
			}
			code, said := answers(t, args...)
			var errs []string
			for line := range strings.Lines(said) {
				if problem, ok := strings.CutPrefix(line, "error: "); ok {
					errs = append(errs, strings.TrimSuffix(problem, "\n"))
				}
			}
			if got := strings.Join(errs, "|"); code != want || got != c.want {
				t.Errorf("exit code %d, want %d\n got %s\nwant %s", code, want, got, c.want)
			}
		})
	}
}

// The settings of jobs are in the file, or on the command line.
func TestWrongFilesOfJobs(t *testing.T) {
	const at = "cron --store nats://127.0.0.1:1/E --election e "
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	must.OK(t, os.WriteFile(file, []byte("jobs:\n  - name: a\n    shedule: x\n"), 0o600))
	other := filepath.Join(t.TempDir(), "jobs.yaml")
	must.OK(t, os.WriteFile(other, []byte("jobs:\n  - {name: a, schedule: '@daily', command: x, overlap: both}\n"), 0o600))
	for args, want := range map[string]string{
		at + "--file none":                          "error: --file: open none: no such file or directory\n",
		at + "--file " + file:                       "error: --file: " + file + `: line 3: there is no setting "shedule"` + "\n",
		at + "--file " + other:                      "error: " + other + `: overlap of job "a" is "both"; it must be skip or queue` + "\n",
		at + "--file " + other + " --timezone UTC":  "error: --timezone is for one job: with --file, write it into the file\n",
		at + "--file " + other + " --at-least-once": "error: --at-least-once is for one job: with --file, write it into the file\n",
	} {
		if code, said := answers(t, strings.Fields(args)...); code != 125 || said != want {
			t.Errorf("%s: exit code %d\n got %swant %s", args, code, said, want)
		}
	}
}

// An error in the command line names the help of the command that was typed.
func TestMisuseNamesTheHelpOfItsCommand(t *testing.T) {
	const at = " --store nats://127.0.0.1:1/E --election e "
	for _, c := range []struct{ args, help string }{
		{"--nothing", "tenure"},
		{"nothing", "tenure"},
		{"version more", "tenure version"},
		{"help nothing", "tenure help"},
		{"status --store nats://h/E", "tenure status"},
		{"status" + at + "--context prod", "tenure status"},
		{"watch" + at + "--kafka-properties f", "tenure watch"},
		{"watch" + at + "--for 5", "tenure watch"},
		{"run" + at, "tenure run"},
		{"cron" + at, "tenure cron"},
		{"run --nothing", "tenure run"},
		{"run" + at + "--priority x -- true", "tenure run"},
		{"run" + at + "--context prod -- true", "tenure run"},
		{"run" + at + "--kafka-properties f -- true", "tenure run"},
		{"run" + at + "--peer-ca f -- true", "tenure run"},
	} {
		_, said := answers(t, strings.Fields(c.args)...)
		if want := "\nhint: see " + c.help + " --help\n"; !strings.HasSuffix(said, want) {
			t.Errorf("tenure %s says\n%swant%s", c.args, said, want)
		}
	}
}

// An unknown variable may be misspelled.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("TENURE_STOER", "nats://h/E")
	t.Setenv("TENURE_KAFKA_SECURITY_PROTOCOL", "SSL")
	t.Setenv("TENURE_TOKEN", "7")
	t.Setenv("TENURE_STOP_WITHIN", "1s") // of another command
	const want = "the variable TENURE_STOER of the environment sets no flag: check its name\n"
	if _, said := answers(t, "status", "--election", "e"); strings.Count(said, "warning:") != 1 || !strings.HasPrefix(said, "warning: "+want) {
		t.Errorf("status says\n%s", said)
	}
	if _, said := answers(t, "version"); said != "" {
		t.Errorf("version says\n%s", said)
	}
}

// TestMisspelledVariables: if a flag is missing that must be given, each command names the
// variables of the environment that may have been meant.
func TestMisspelledVariables(t *testing.T) {
	t.Setenv("TENURE_ELECTIONS", "e")
	t.Setenv("TENURE_NO_LEDER", "e")
	for command, required := range map[string][]string{
		"run": {"--store nats://h/E", "--election e", ""}, "status": {"--store nats://h/E", "--election e", ""}, "watch": {"--store nats://h/E", "--election e"},
		"hand-over": {"--store nats://h/E", "--election e"}, "reset": {"--store nats://h/E --election e", "--store nats://h/E"}, "dashboard": {""},
		"end-lease": {"--store nats://h/E --election e", "--store nats://h/E", "--election e"},
	} {
		for _, flags := range required {
			args := strings.Fields(command + " " + flags)
			if command == "run" {
				args = append(args, "--", "true")
			}
			code, said := answers(t, args...)
			if code == 0 || strings.Count(said, "TENURE_ELECTIONS") != 1 || strings.Count(said, "TENURE_NO_LEDER") != 1 {
				t.Errorf("%s says\n%s", strings.Join(args, " "), said)
			}
		}
	}
}

// answers returns the program's exit code and standard error.
func answers(t *testing.T, args ...string) (code int, errs string) {
	t.Helper()
	var said strings.Builder
	code = execute(t.Context(), args, strings.NewReader(""), io.Discard, &said)
	return code, said.String()
}

func TestDefaultOfStopWithin(t *testing.T) {
	for lease, want := range map[string]time.Duration{"1s": 200 * time.Millisecond, "1m": 5 * time.Second} {
		var r runFlags
		f := pflag.NewFlagSet("run", pflag.ContinueOnError)
		r.define(f)
		must.OK(t, f.Parse([]string{"--store", "nats://host/E", "--election", "billing", "--lease", lease}))
		if err := r.resolve(f, func(string) string { return "" }); err != nil || r.stopWithin != want {
			t.Errorf("for a lease of %s it is %v (%v)", lease, r.stopWithin, err)
		}
	}
}
