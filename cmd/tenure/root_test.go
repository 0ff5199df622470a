//go:build unix

package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// typed returns the commands that users type, without those that only explain and without those of
// the command library.
func typed() []*cobra.Command {
	return slices.DeleteFunc(newRoot().Commands(), func(c *cobra.Command) bool {
		return c.Hidden || c.Name() == "stores" || c.Name() == "help" || c.Name() == "completion"
	})
}

// usageCode returns the exit code of a wrong command line. run avoids the exit codes of its
// command.
func usageCode(c *cobra.Command) int {
	if c.Name() == "run" {
		return 125
	}
	return 2
}

func try(t *testing.T, args ...string) (code int, errs string) {
	t.Helper()
	var out, text strings.Builder
	return execute(t.Context(), args, strings.NewReader(""), &out, &text), text.String()
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
		if c.Name() == "man" || c.Name() == "run" {
			args = append(args, t.TempDir())
		}
		usage := usageCode(c)
		code, errs := try(t, args...)
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
		if code, errs := try(t, args...); code != usage || !strings.HasPrefix(errs, "error: unknown flag: --nothing\n") {
			t.Errorf("%s: exit code %d, %s", c.Name(), code, errs)
		}
	}
}

// The page is for readers who have not installed the command yet, so it says the same as the help.
func TestCommandPageNamesEveryFlag(t *testing.T) {
	text, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range typed() {
		page := string(text)
		if !strings.Contains(page, "tenure "+c.Name()) && !strings.Contains(page, "`"+c.Name()+"`") {
			t.Errorf("%s is missing", c.Name())
		}
		if c.Name() == "run" {
			page = string(settings)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(page, "`--"+f.Name) {
				t.Errorf("--%s of %s is missing", f.Name, c.Name())
			}
		})
	}
}

// The fields of --json are in the help and on the page.
func TestCommandPageNamesTheJSONFields(t *testing.T) {
	text, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	for command, object := range map[string]any{"status": standing{}, "hand-over": step{}, "reset": replacement{}} {
		c, _, err := newRoot().Find([]string{command})
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range fieldsOf(reflect.TypeOf(object)) {
			if !strings.Contains(string(text), "`"+field+"`") || !regexp.MustCompile(`\b`+field+`\b`).MatchString(c.Long) {
				t.Errorf("%s of %s is not in its help, or not on the page", field, command)
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
