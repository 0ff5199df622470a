package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/tenure/internal/demo"
	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
)

// parse reads a command line and an environment.
func parse(t *testing.T, args string, env map[string]string) (demo.Options, error) {
	t.Helper()
	var d demoFlags
	f := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	d.define(f)
	if err := f.Parse(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	return d.options(f, func(name string) string { return env[name] })
}

func TestFlagsWinOverTheEnvironmentAndThatOverDefaults(t *testing.T) {
	type env map[string]string
	for _, c := range []struct {
		why   string
		args  string
		env   env
		check func(demo.Options) bool
	}{
		{"KEY by default", "", env{}, func(o demo.Options) bool { return o.Election == "demo" }},
		{"KEY", "", env{"KEY": "k"}, func(o demo.Options) bool { return o.Election == "k" }},
		{"KEY and its flag", "--election f", env{"KEY": "k"}, func(o demo.Options) bool { return o.Election == "f" }},
		{"an empty KEY is none", "", env{"KEY": ""}, func(o demo.Options) bool { return o.Election == "demo" }},
		{"WORKERS by default", "", env{}, func(o demo.Options) bool { return o.Candidates == 5 }},
		{"WORKERS", "", env{"WORKERS": "7"}, func(o demo.Options) bool { return o.Candidates == 7 }},
		{"WORKERS and its flag", "--candidates 3", env{"WORKERS": "7"}, func(o demo.Options) bool { return o.Candidates == 3 }},
		{"a flag that repeats the default", "--candidates 5", env{"WORKERS": "7"}, func(o demo.Options) bool { return o.Candidates == 5 }},
		{"a bad WORKERS does not matter to its flag", "--candidates 3", env{"WORKERS": "x"}, func(o demo.Options) bool { return o.Candidates == 3 }},
		{"no place by default", "", env{}, func(o demo.Options) bool { return o.Place.IsZero() }},
		{"CONTEXT", "", env{"CONTEXT": "prod"}, func(o demo.Options) bool {
			return o.Place.Context == "prod" && o.Place.Bucket == "DEMO_ELECTION" && o.Place.Setting == "CONTEXT"
		}},
		{"CONTEXT and its flag", "--context test", env{"CONTEXT": "prod"}, func(o demo.Options) bool {
			return o.Place.Context == "test" && o.Place.Setting == "--context"
		}},
		{"CONTEXT and --store", "--store nats://h/E", env{"CONTEXT": "prod"}, func(o demo.Options) bool {
			return o.Place.Context == "" && o.Place.Bucket == "E"
		}},
		{"no splay by default", "", env{}, func(o demo.Options) bool { return o.Splay == 0 }},
		{"NOSPLAY", "", env{"NOSPLAY": "1"}, func(o demo.Options) bool { return o.Splay == 0 }},
		{"NOSPLAY and a splay", "--splay 2s", env{"NOSPLAY": "1"}, func(o demo.Options) bool { return o.Splay == 2*time.Second }},
		{"the other flags", "--lease 3s --renew 1s --crash-every 0 --for 1m --create --json -v", env{}, func(o demo.Options) bool {
			return o.Lease == 3*time.Second && o.Renew == time.Second && o.CrashEvery == 0 && o.For == time.Minute && o.Create && o.JSON && o.Verbose
		}},
		{"and their defaults", "", env{}, func(o demo.Options) bool {
			return o.Lease == 2*time.Second && o.CrashEvery == 5*time.Second && o.For == 0 && !o.Create && !o.JSON && !o.Verbose
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			o, err := parse(t, c.args, c.env)
			if err != nil {
				t.Fatal(err)
			}
			if !c.check(o) {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestFlagsThatContradict(t *testing.T) {
	_, err := parse(t, "--store nats://h/E --context prod", nil)
	if fault.Code(err) != fault.Usage {
		t.Errorf("got %v", err)
	}
}

func TestBadEnvironmentNamesTheVariable(t *testing.T) {
	_, err := parse(t, "", map[string]string{"WORKERS": "many"})
	if err == nil || !strings.Contains(err.Error(), `WORKERS in the environment is "many"`) || fault.Code(err) != fault.Failed {
		t.Errorf("got %v", err)
	}
}
