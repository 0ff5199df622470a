package demo

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/cmd/internal/stores/s3bucket"
)

// The scripts of the command have more settings.
func TestRunReportsAllBadSettingsBeforeItStarts(t *testing.T) {
	good := Options{
		Election: "demo", Candidates: 5, Lease: 2 * time.Second, CrashEvery: 5 * time.Second, Out: &until{text: "x", found: func() {}},
		Command: func(string) *exec.Cmd { panic("a candidate is started") },
	}
	for _, c := range []struct {
		why    string
		change func(*Options)
		want   []string
	}{
		{"too many", func(o *Options) { o.Candidates = 101 }, []string{"--candidates is 101"}},
		{"a long splay", func(o *Options) { o.Splay = 2 * time.Hour }, []string{"--splay is 2h0m0s"}},
		{"trials too often", func(o *Options) { o.CrashEvery = 1 }, []string{"--crash-every is 1ns"}},
		{"no key", func(o *Options) { o.Election = "" }, []string{"--election is empty"}},
		{"a key that no object can have", func(o *Options) {
			o.Place.At, o.Election = &s3bucket.Place{Bucket: "bucket"}, "a//b"
		}, []string{`--election cannot be a key of the store: key "a//b"`}},
		{"a key that Kafka cannot hold", func(o *Options) {
			o.Place.At, o.Election = &kafkatopic.Place{Topic: "t"}, "a\nb"
		}, []string{`--election cannot be a key of the store: kafkalog: not a key that this store holds: "a\nb"`}},
		{"peers without ports", func(o *Options) {
			o.EmbeddedS3, o.Peers = true, &peers.Settings{Listen: peers.Endpoint{Host: "127.0.0.1", Port: 65535}}
		}, []string{"--peer: 5 members from 127.0.0.1:65535 on"}},
		{
			"all of them",
			func(o *Options) { o.Candidates, o.Lease, o.Renew, o.Election = -1, 1, 5, ".a" },
			[]string{"--candidates is -1", "--lease is 1ns", "--election cannot be"},
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			o := good
			c.change(&o)
			err := Run(context.Background(), o)
			var f *fault.Error
			if !errors.As(err, &f) || f.Hint == "" {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in:\n%v", want, err)
				}
			}
		})
	}
}

// The formula is the library's. It must not be printed as a bound where it is none.
func TestSlackIsThePollingInterval(t *testing.T) {
	lease := 2 * time.Second
	for _, c := range []struct {
		why    string
		o      Options
		want   time.Duration
		polled bool
	}{
		{"NATS pushes", Options{Lease: lease}, 0, false},
		{"object storage is polled", Options{Lease: lease, EmbeddedS3: true}, 2 * time.Second, true},
		{"that of others too", Options{Lease: lease, Place: stores.Place{At: &s3bucket.Place{Bucket: "b"}}}, 2 * time.Second, true},
		{"Kafka pushes", Options{Lease: lease, EmbeddedKafka: &kafkatopic.Place{}}, 0, false},
		{"peers push", Options{Lease: lease, EmbeddedS3: true, Peers: &peers.Settings{}}, 0, true},
	} {
		if got := c.o.slack(); got != c.want || c.o.Polled() != c.polled {
			t.Errorf("%s: %v, polled %v", c.why, got, c.o.Polled())
		}
	}
}
