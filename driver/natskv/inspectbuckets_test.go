//go:build integration

package natskv

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/test/wait"
)

// TestInspectBuckets checks real buckets, for the names and units of the settings.
func TestInspectBuckets(t *testing.T) {
	const seqs = "warning: first_seq: the bucket counts its writes from 1"
	f := newFixture(t)
	for _, c := range []struct {
		name   string
		change func(*jetstream.KeyValueConfig)
		want   []string
	}{
		{"plain", func(*jetstream.KeyValueConfig) {}, []string{"advice: replicas", seqs}},
		{"memory", inMemory, []string{"advice: replicas", "unsafe: storage", seqs}},
		{"nats kv add --ttl 10s", withTTL(10 * time.Second),
			[]string{"advice: replicas", seqs, "unsafe: ttl: a record expires after 10s, within the lease of 15s",
				"advice: limit_marker_ttl"}},
		{"nats kv add --ttl 5m", withTTL(5 * time.Minute),
			[]string{"advice: replicas", seqs, "advice: ttl", "advice: limit_marker_ttl"}},
		{"markers", func(c *jetstream.KeyValueConfig) { c.TTL, c.LimitMarkerTTL = time.Hour, time.Minute },
			[]string{"advice: replicas", seqs, "advice: ttl"}},
		{"small", func(c *jetstream.KeyValueConfig) { c.MaxValueSize, c.MaxBytes, c.History = 1024, 1<<20, 3 },
			[]string{"advice: replicas", seqs, "warning: max_value_size", "advice: max_bytes", "advice: history: 2 old records"}},
		{"sources", func(c *jetstream.KeyValueConfig) { c.Sources = []*jetstream.StreamSource{{Name: f.kv.Bucket()}} },
			[]string{"advice: replicas", seqs, "unsafe: sources"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kv := addBucket(t, f.js, c.change)
			for _, s := range []driver.Store{
				openStore(t, f.js, kv.Bucket()), handled(t, f.nc, kv.Bucket()), handledLegacy(t, f.nc, kv.Bucket()),
			} {
				found, err := s.(driver.Inspector).Inspect(wait.Context(t), testLease)
				if err != nil {
					t.Fatal(err)
				}
				if len(found) != len(c.want) {
					t.Errorf("found %v; want %q", found, c.want)
					continue
				}
				for i, want := range c.want {
					if !strings.HasPrefix(found[i].String(), want) {
						t.Errorf("found %q; want %q", found[i], want)
					}
				}
			}
		})
	}
}

// TestInspectMirror: a handle can be for a mirror, which Open refuses.
func TestInspectMirror(t *testing.T) {
	f := newFixture(t)
	mirror := addBucket(t, f.js, func(c *jetstream.KeyValueConfig) { c.Mirror = &jetstream.StreamSource{Name: f.kv.Bucket()} })
	found, err := FromKeyValue(mirror).Inspect(wait.Context(t), testLease)
	f.must(err)
	isMirror := func(f driver.Finding) bool { return f.Setting == "mirror" && f.Severity == driver.Unsafe }
	if !slices.ContainsFunc(found, isMirror) {
		t.Errorf("found %v; want that it is a mirror", found)
	}
}
