//go:build integration && unix

package main

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/cmd/internal/test/servers"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// A full bucket causes an error with the remedy.
func TestFullBucketIsReportedWithARemedy(t *testing.T) {
	t.Parallel()
	url := servers.NATS(t).ClientURL()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx := wait.Context(t)
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "FULL", MaxBytes: 300, Storage: jetstream.FileStorage})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(ctx, "billing", "nobody's"); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(ctx, "other", strings.Repeat("x", 130)); err != nil {
		t.Fatal(err)
	}
	tenureSays(t, "reset", "--force", "--store", url+"/FULL", "--election", "billing").must(t, 1,
		`^error: --store .*/FULL: the server cannot store anything in bucket FULL: .*maximum bytes exceeded`, `^hint: look at its limits .*--max-bytes=-1$`)
	w := tenureRuns(t, "run", "--store", url+"/FULL", "--election", "billing", "--", "true").start()
	w.says("of 300 bytes of the bucket are in use")
	w.says("setting=max_bytes")
	w.stops(0)
	if strings.Contains(w.errs.String(), "first_seq") {
		t.Errorf("each start warns of a bucket of other tools:\n%s", &w.errs)
	}
	w = tenureRuns(t, "run", "--store", url+"/FULL", "--election", "billing", "--inspect", "--", "true").start()
	w.says("level=WARN msg=\"the bucket counts its writes from 1")
	w.stops(0)
	w = tenureRuns(t, "run", "--store", url+"/FULL", "--election", "long-"+strings.Repeat("x", 60), "--", "true").start()
	w.says("the server cannot store anything in bucket FULL: ") // trouble of a claim
	w.says("if it is full, allow more: nats stream edit KV_FULL --max-bytes=-1")
	w.stops(0)
}

// The server at the port is no broker, as its first bytes show.
func TestPortThatIsNotKafka(t *testing.T) {
	t.Parallel()
	for why, says := range map[string]struct{ greeting, want string }{
		"SSH":  {"SSH-2.0-OpenSSH_9.2\r\n", " is not a Kafka broker"},
		"NATS": {"INFO {}\r\n", " is not a Kafka broker"},
		"TLS":  {"\x15\x03\x03\x00\x02\x02\x46", "the listener needs TLS, but security.protocol is PLAINTEXT"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_, _ = io.WriteString(c, says.greeting)
			}
		}()
		got := tenureSays(t, "status", "--store", "kafka://"+l.Addr().String()+"/topic", "--election", "e", "--connect-timeout", "0")
		if got.code != 1 || !strings.Contains(got.errs, says.want) || !strings.Contains(got.errs, "hint: ") {
			t.Errorf("%s: exit code %d\n%s", why, got.code, got.errs)
		}
	}
}

func TestLeaseOutOfRangeIsReported(t *testing.T) {
	t.Parallel()
	h := natsHome(t)
	for lease, want := range map[time.Duration]string{0: "leaseMillis is 0", -time.Second: "leaseMillis is -1000", 2 * time.Hour: "leaseMillis is 7200000"} {
		h.put(record("node-1", 7, lease, time.Now(), ""))
		h.says("status").must(t, 1, "", want+", not from 1 to 3600000")
	}
}
