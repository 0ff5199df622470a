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
		"nats://user:p/a?s#s@host/E":             "nats://***@host/E",
		"user:pass@host":                         "***@host",
		"":                                       "",
		"s3://b/p?endpoint=http://h:1&region=r":  "s3://b/p?endpoint=http://h:1&region=r",
		"s3://b?path-style=true&unquoted=true":   "s3://b?path-style=true&unquoted=true",
		"s3://b?secret=s3cret&region=r":          "s3://b?secret=***&region=r",
		"s3://b?s3cret":                          "s3://b?***",
		"s3://id:s3cret@b?region=r":              "s3://***@b?region=r",
		"s3://b?endpoint=http://id:s3cret@h":     "s3://***@h",
		"s3://b?endpoint=http%3A//id:s3cret%40h": "s3://b?endpoint=***",
		"s3://b?endpoint=http%zz":                "s3://b?endpoint=***",
		"s3://b?region=r#s3cret":                 "s3://b?region=r#***",
		"kafka://user:s3cret@h:1,i/t?mode=neli":  "kafka://***@h:1,i/t?mode=neli",
		"kafka://h/t?sasl.password=s3cret":       "kafka://h/t?sasl.password=***",
	} {
		if got := stores.Redact(raw); got != want {
			t.Errorf("%q is shown as %q, want %q", raw, got, want)
		}
	}
}
