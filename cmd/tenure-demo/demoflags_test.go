package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/stores/natsbucket"
	"github.com/tenure-go/tenure/cmd/internal/stores/s3bucket"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/demo"
)

// parse reads a command line and an environment.
func parse(t *testing.T, args string, env map[string]string) (demo.Options, error) {
	t.Helper()
	var d demoFlags
	f := pflag.NewFlagSet("demo", pflag.ContinueOnError)
	d.define(f)
	must.OK(t, f.Parse(strings.Fields(args)))
	return d.options(f, func(name string) string { return env[name] })
}

// natsOf returns the zero value for another store.
func natsOf(o demo.Options) natsbucket.Place {
	if p, ok := o.Place.At.(*natsbucket.Place); ok {
		return *p
	}
	return natsbucket.Place{}
}

func s3Of(o demo.Options) s3bucket.Place {
	if p, ok := o.Place.At.(*s3bucket.Place); ok {
		return *p
	}
	return s3bucket.Place{}
}

func TestFlagsOverrideTheEnvironmentAndBothOverrideDefaults(t *testing.T) {
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
			return natsOf(o).Context == "prod" && natsOf(o).Bucket == "DEMO_ELECTION" && o.Place.Setting == "CONTEXT"
		}},
		{"CONTEXT and its flag", "--context test", env{"CONTEXT": "prod"}, func(o demo.Options) bool {
			return natsOf(o).Context == "test" && o.Place.Setting == "--context"
		}},
		{"CONTEXT and --store", "--store nats://h/E", env{"CONTEXT": "prod"}, func(o demo.Options) bool {
			return natsOf(o).Context == "" && natsOf(o).Bucket == "E"
		}},
		{"no splay by default", "", env{}, func(o demo.Options) bool { return o.Splay == 0 }},
		{"NOSPLAY", "", env{"NOSPLAY": "1"}, func(o demo.Options) bool { return o.Splay == 0 }},
		{"NOSPLAY and a splay", "--splay 2s", env{"NOSPLAY": "1"}, func(o demo.Options) bool { return o.Splay == 2*time.Second }},
		{"a variable of the flag's own", "", env{"TENURE_CRASH_EVERY": "7s", "TENURE_JSON": "true"}, func(o demo.Options) bool {
			return o.CrashEvery == 7*time.Second && o.JSON
		}},
		{"and the flag", "--crash-every 8s", env{"TENURE_CRASH_EVERY": "7s"}, func(o demo.Options) bool { return o.CrashEvery == 8*time.Second }},
		{"the own one before the short one", "", env{"TENURE_ELECTION": "t", "KEY": "k"}, func(o demo.Options) bool { return o.Election == "t" }},
		{"TENURE_STORE and CONTEXT", "", env{"TENURE_STORE": "nats://h/E", "CONTEXT": "prod"}, func(o demo.Options) bool {
			return natsOf(o).Bucket == "E" && o.Place.Setting == "TENURE_STORE"
		}},
		{"TENURE_STORE and --context", "--context prod", env{"TENURE_STORE": "nats://h/E"}, func(o demo.Options) bool {
			return natsOf(o).Context == "prod" && o.Place.Setting == "--context"
		}},
		{"object storage", "--store s3://bucket/a/b?region=r", env{}, func(o demo.Options) bool {
			s := s3Of(o)
			return s.Bucket == "bucket" && s.Prefix == "a/b" && s.Region == "r" && o.Polled() && o.Lease == 5*time.Second &&
				o.CrashEvery == 12500*time.Millisecond
		}},
		{"object storage in the demo", "--store s3-embedded:", env{}, func(o demo.Options) bool {
			return o.EmbeddedS3 && o.Place.IsZero() && o.Polled() && o.Lease == 2*time.Second
		}},
		{"Kafka", "--store kafka://h/t --lease 3s", env{"TENURE_KAFKA_CLIENT_ID": "x"}, func(o demo.Options) bool {
			k := o.Place.At.(*kafkatopic.Place)
			return k.Topic == "t" && k.Properties["client.id"] == "x" && !o.Polled() && o.Lease == 3*time.Second
		}},
		{"Kafka in the demo", "--store kafka-embedded:?mode=neli&group=g", env{}, func(o demo.Options) bool {
			return o.EmbeddedKafka.NELI.Group == "g" && o.Place.IsZero() && !o.Polled() && o.Lease == 2*time.Second
		}},
		{"variables for Kafka, and another store", "", env{"TENURE_KAFKA_PROPERTIES": "missing", "TENURE_KAFKA_USER": "u"}, func(o demo.Options) bool {
			return o.Place.IsZero()
		}},
		{"peers", "--store s3-embedded: --peer 127.0.0.1:0", env{}, func(o demo.Options) bool {
			return o.Peers != nil && o.Peers.Listen.String() == "127.0.0.1:0"
		}},
		{"TENURE_PEER", "--store s3-embedded:", env{"TENURE_PEER": "[::1]:80"}, func(o demo.Options) bool {
			return o.Peers != nil && o.Peers.Address.String() == "[::1]:80"
		}},
		{"trials keep to the lease", "--lease 4s", env{}, func(o demo.Options) bool { return o.CrashEvery == 10*time.Second }},
		{"the other flags", "--lease 3s --renew 1s --crash-every 0 --for 1m --create --json -v", env{}, func(o demo.Options) bool {
			return o.Lease == 3*time.Second && o.Renew == time.Second && o.CrashEvery == 0 && o.For == time.Minute && o.Create && o.JSON && o.Verbose
		}},
		{"and their defaults", "", env{}, func(o demo.Options) bool {
			return o.Lease == 2*time.Second && o.CrashEvery == 5*time.Second && o.For == 0 && !o.Create && !o.JSON && !o.Verbose
		}},
	} {
		t.Run(c.why, func(t *testing.T) {
			o, err := parse(t, c.args, c.env)
			must.OK(t, err)
			if !c.check(o) {
				t.Errorf("got %+v", o)
			}
		})
	}
}

func TestContradictoryFlags(t *testing.T) {
	for _, args := range []string{"--store nats://h/E --context prod", "--peer-allow 10.0.0.0/8", "--store s3-embedded: --peer-ca x", "--store kafka-embedded: --kafka-properties x"} {
		if _, err := parse(t, args, nil); fault.Code(err) != fault.Usage {
			t.Errorf("%s: got %v", args, err)
		}
	}
}

func TestNATSNeedsNoPeers(t *testing.T) {
	for _, args := range []string{"", "--store nats://h/E", "--context prod"} {
		_, err := parse(t, args, map[string]string{"TENURE_PEER": "127.0.0.1:0"})
		var f *fault.Error
		if !errors.As(err, &f) || !strings.HasPrefix(f.Error(), "TENURE_PEER: NATS") || !strings.Contains(f.Hint, "s3://") {
			t.Errorf("%s: got %v", args, err)
		}
	}
}

func TestBadEnvironmentNamesTheVariable(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"WORKERS", "many", `WORKERS is "many", not a whole number`},
		{"TENURE_CANDIDATES", "many", `TENURE_CANDIDATES is "many", not a whole number`},
		{"TENURE_LEASE", "5", `TENURE_LEASE is "5", not a time such as 500ms, 15s or 1h30m`},
		{"TENURE_STORE", "s3://", `TENURE_STORE "s3://": names no bucket`},
		{"TENURE_PEER", "x", `TENURE_PEER "x": is not HOST:PORT`},
		{"TENURE_STORE", "kafka-embedded:?x=y", `TENURE_STORE "kafka-embedded:?x=***": parameter "x" is unknown`},
	} {
		_, err := parse(t, "", map[string]string{c.name: c.value})
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.Code(err) != fault.Usage {
			t.Errorf("got %v", err)
		}
	}
}
