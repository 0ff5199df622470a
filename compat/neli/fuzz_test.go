package neli

import (
	"strings"
	"testing"
)

// FuzzConfig: no value of a property of Kafka's clients is in an error, and times are within their
// limits.
func FuzzConfig(f *testing.F) {
	f.Add("max.poll.interval.ms=86400001\nsasl.password=", "")
	f.Add("group.instance.id=a b\nsasl.mechanism=PLAIN\nsecurity.protocol=SASL_SSL\nsasl.username=", "x")
	f.Add("heartbeat.interval.ms=", "9223372036854775807")
	const secret = "s3cret-w0rd"
	f.Fuzz(func(t *testing.T, before, after string) {
		given := KafkaConfigMap{}
		for line := range strings.SplitSeq(before+secret+after, "\n") {
			// Files are left alone: the fuzzer must not read any.
			if name, value, ok := strings.Cut(line, "="); ok && !strings.Contains(name, "location") && !strings.Contains(name, secret) {
				given[name] = value
			}
		}
		p, err := sort(given)
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: the error shows a secret: %v", given, err)
		}
		if err == nil && (p.silence <= 0 || p.silence > mostSilence || p.heartbeat < 0) {
			t.Errorf("%q is accepted as %+v", given, p)
		}
	})
}
