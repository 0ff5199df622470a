package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// FuzzEnvironment: no variable of the environment makes an error that shows a password which was
// meant for another one, and each value that is accepted follows the rules of its kind.
func FuzzEnvironment(f *testing.F) {
	f.Add("15s", "3", "true", "name")
	f.Add("postgres://u:", "@h/db", "-1", "a\nb")
	f.Add("-5s", "99999999999999999999", "1", "")
	const secret = "pass-s3cret-w0rd"
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		for _, values := range [][]string{{a, b, c, d}, {a + ":" + secret + "@" + b, c, d, a}, {a, c + ":" + secret + "@" + d, b, a}, {d, a, b + ":" + secret + "@" + c, a}} {
			flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
			lease := flags.Duration("lease", time.Second, "")
			flags.Int("priority", 0, "")
			flags.Bool("create", false, "")
			name := flags.String("id", "", "")
			env := map[string]string{"TENURE_LEASE": values[0], "TENURE_PRIORITY": values[1], "TENURE_CREATE": values[2], "TENURE_ID": values[3]}
			from, err := Fill(flags, func(v string) string { return env[v] }, nil)
			if err != nil {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q: the error shows a secret: %v", env, err)
				}
				continue
			}
			if *lease <= 0 || strings.Contains(*name, "\n") {
				t.Errorf("%q is accepted", env)
			}
			for flag, variable := range from {
				if env[variable] == "" || from.Named(flag) != variable {
					t.Errorf("%s has the source %q", flag, variable)
				}
			}
		}
	})
}
