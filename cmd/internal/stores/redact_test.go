package stores_test

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/stores"
)

func TestRedact(t *testing.T) {
	for raw, want := range map[string]string{
		"nats://host/E":                          "nats://host/E",
		"nats://user:pass@host/E":                "nats://***@host/E",
		"nats://us@er:pa@ss@host/E":              "nats://***@host/E",
		"nats://user:p/a?s#s@host/E":             "nats://***",
		"nats://u:pass@a:1,b:2/E":                "nats://***@a:1,b:2/E",
		"nats://a:1,u:pass@b:2/E":                "nats://***@b:2/E",
		"nats://a,nats://u:pass@b/E":             "nats://***",
		"nats://[::1]:4222/E?pristine=true":      "nats://[::1]:4222/E?pristine=true",
		"nats://u:pass":                          "nats://***",
		"nats://u:pass/E":                        "nats://***",
		"nats:pass":                              "***",
		"user:pass@host":                         "***",
		"pass@host":                              "***",
		"host=h password=pass":                   "***",
		"u:pass@tcp(h:3306)/db":                  "***",
		"jdbc:postgresql://u:pass@h/db":          "***",
		"redis+sentinel://:pass@h:1,i:2/main":    "redis+sentinel://***",
		"":                                       "***",
		"s3://b/p?endpoint=http://h:1&region=r":  "s3://b/p?endpoint=http://h:1&region=r",
		"s3://b?path-style=true&unquoted=true":   "s3://b?path-style=true&unquoted=true",
		"s3://b?secret=s3cret&region=r":          "s3://b?secret=***",
		"s3://b?region=r&secret=s3&cret=x":       "s3://b?region=r&secret=***",
		"s3://b?s3cret":                          "s3://b?***",
		"s3://b?s3cret==":                        "s3://b?***",
		"s3://b?region=":                         "s3://b?region=",
		"s3://id:s3cret@b?region=r":              "s3://***@b?region=r",
		"s3://b/s3cret%40h":                      "s3://***",
		"s3://b?endpoint=http://id:s3cret@h":     "s3://***",
		"s3://b?endpoint=http%3A//id:s3cret%40h": "s3://b?endpoint=***",
		"s3://b?endpoint=https://h/?s3cret":      "s3://b?endpoint=***",
		"s3://b?region=r#s3cret":                 "s3://b?region=r#***",
		"kafka://user:s3cret@h:1,i/t?mode=neli":  "kafka://***@h:1,i/t?mode=neli",
		"kafka://h/t?sasl.password=s3cret":       "kafka://h/t?sasl.password=***",
		"postgres://user:s3cret@h:1,i/db":        "postgres://user:***@h:1,i/db",
		"postgresql://user:a@s3cret@h/db":        "postgresql://user:***@h/db",
		"mysql://user@h/db?tls=true":             "mysql://user@h/db?tls=true",
		"mariadb://user:s3cret@h/db":             "mariadb://user:***@h/db",
		"postgres://user:s3/cret@h/db":           "postgres://***",
		"postgres://us%40er:s3cret@h/db":         "postgres://***@h/db",
		"postgres://s3@cret@h/db":                "postgres://***@h/db",
		"postgres:user:s3cret@h/db":              "***",
		"postgres://%2Frun%2Fpg/db":              "postgres://%2Frun%2Fpg/db",
		"sqlite:/a b/c@d.db?table=t":             "sqlite:/a b/c@d.db?table=t",
		"sqlite:/a.db?key=s3cret":                "sqlite:/a.db?key=***",
		"sqlite://u:s3cret@h/x":                  "sqlite://***",
	} {
		if got := stores.Redact(raw); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}
