package cli

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestInFlagsNamesEachFlag(t *testing.T) {
	_, err := tenure.New(memory.New(), "", tenure.Config{
		ID: strings.Repeat("x", 300), Lease: time.Millisecond, StopWithin: 2 * time.Hour, FinishWithin: 48 * time.Hour, Priority: 1e9,
	})
	text := Flags{}.InFlags(err).Error()
	for _, flag := range []string{"--election", "--id", "--lease", "--stop-within", "--finish-within", "--priority"} {
		if !strings.Contains(text, flag) {
			t.Errorf("%s is not named in:\n%s", flag, text)
		}
	}
	if other := errors.New("ID and Lease"); !errors.Is(Flags{}.InFlags(other), other) {
		t.Error("an error that is not about the configuration has changed")
	}
	if (Flags{}).InFlags(nil) != nil {
		t.Error("nothing wrong is an error")
	}
}

// placeOf reads a command line and an environment like a command that starts no server.
func placeOf(t *testing.T, args string, env map[string]string) (stores.Place, StoreFlags, error) {
	t.Helper()
	var s StoreFlags
	f := pflag.NewFlagSet("status", pflag.ContinueOnError)
	s.Define(f)
	must.OK(t, f.Parse(strings.Fields(args)))
	look := func(name string) string { return env[name] }
	from, err := Fill(f, look, nil)
	must.OK(t, err)
	p, err := s.Place(f, from, look)
	return p, s, err
}

func TestStoreFlagsNameAPlace(t *testing.T) {
	type env map[string]string
	for _, c := range []struct {
		why, args string
		env       env
		want      string
		setting   string
	}{
		{"a URL", "--store nats://h/E", nil, "nats://h/E", "--store"},
		{"a URL with a password", "", env{"TENURE_STORE": "nats://u:s3cret@h/E"}, "nats://***@h/E", "TENURE_STORE"},
		{"a context", "--context prod", nil, "context prod, bucket ELECTIONS", "--context"},
		{"a context with a bucket", "--context prod/E", nil, "context prod, bucket E", "--context"},
		{"a context by a variable", "", env{"TENURE_CONTEXT": "prod/E"}, "context prod, bucket E", "TENURE_CONTEXT"},
		{"both by variables", "", env{"TENURE_CONTEXT": "prod", "TENURE_STORE": "nats://h/E"}, "nats://h/E", "TENURE_STORE"},
		{"the command line first", "--context prod", env{"TENURE_STORE": "nats://h/E"}, "context prod, bucket ELECTIONS", "--context"},
		{"Kafka with a user from elsewhere", "--store kafka://h/t", env{"TENURE_KAFKA_USER": "u", "TENURE_KAFKA_PASSWORD": "s3cret"}, "kafka://h/t", "--store"},
		{"variables for Kafka, and another store", "--store s3://bkt?region=r", env{"TENURE_KAFKA_PROPERTIES": "missing"}, "s3://bkt?region=r", "--store"},
	} {
		t.Run(c.why, func(t *testing.T) {
			p, s, err := placeOf(t, c.args, c.env)
			must.OK(t, err)
			if p.String() != c.want || p.Setting != c.setting || s.Timeout != 30*time.Second {
				t.Errorf("got %v from %s, waits %v", p, p.Setting, s.Timeout)
			}
		})
	}
}

func TestStoreFlagsWithoutAPlace(t *testing.T) {
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"", "--store is missing", fault.Usage},
		{"--store nats://h/E --context prod", "both name a server", fault.Usage},
		{"--store nats://h/E --kafka-properties x", "--kafka-properties needs --store kafka://", fault.Usage},
		{"--context prod --kafka-properties x", "--kafka-properties needs --store kafka://", fault.Usage},
		{"--store s3-embedded:", "inside tenure-demo", fault.Usage},
		{"--context prod/", `--context "prod/": is neither`, fault.Usage},
		{"--context /E", "is neither", fault.Usage},
		{"--context prod/a/b", "is neither", fault.Usage},
	} {
		_, _, err := placeOf(t, c.args, nil)
		var f *fault.Error
		if err = fault.WithHelp("tenure", err); !errors.As(err, &f) || !strings.Contains(err.Error(), c.want) || fault.Code(err) != c.code || f.Hint == "" {
			t.Errorf("%s: got %v", c.args, err)
		}
	}
}

func TestConnectReportsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, err := placeOf(t, "--store nats://127.0.0.1:1/E --connect-timeout 2s", nil)
		must.OK(t, err)
		reports := 0
		_, err = s.Connect(t.Context(), p, "billing", stores.Options{}, func(err error) {
			reports++
			if !strings.HasPrefix(err.Error(), "--store nats://127.0.0.1:1/E: cannot connect") {
				t.Errorf("reported %v", err)
			}
		})
		if reports != 1 || !fault.Passes(err) {
			t.Errorf("reported %d times, then %v", reports, err)
		}
	})
}
