package s3lect_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/compat/s3lect"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/memory"
	"github.com/tenure-go/tenure/internal/test/able"
)

func TestLegacyConfigIsChecked(t *testing.T) {
	cases := []struct {
		name string
		cfg  s3lect.LegacyConfig
		ok   bool
		why  string
	}{
		{"zero", s3lect.LegacyConfig{}, true, "S3lect's own defaults"},
		{"all set", s3lect.LegacyConfig{LeaderTimeout: time.Minute, MaxSkew: 59 * time.Second}, true, ""},
		{"short timeout alone", s3lect.LegacyConfig{LeaderTimeout: time.Second}, true, "the skew follows"},
		{"no time at all", s3lect.LegacyConfig{LeaderTimeout: -1}, false, "nobody could lead"},
		{"timeout beyond all leases", s3lect.LegacyConfig{LeaderTimeout: time.Hour + 1}, false, "no record can say so"},
		{"skew below zero", s3lect.LegacyConfig{MaxSkew: -1}, false, "a distance"},
		{"skew of the timeout", s3lect.LegacyConfig{MaxSkew: 15 * time.Second}, false, "S3lect itself would not hold"},
	}
	for _, c := range cases {
		if s, err := s3lect.Legacy(memory.New(), c.cfg); (err == nil) != c.ok || (s != nil) != c.ok {
			t.Errorf("%s: %v, want ok %v: %s", c.name, err, c.ok, c.why)
		}
	}
	if s, err := s3lect.Legacy(nil, s3lect.LegacyConfig{}); err == nil || s != nil {
		t.Errorf("over no store: %v, %v", s, err)
	}
}

func TestLegacyHasTheAbilitiesOfItsStore(t *testing.T) {
	for name, inner := range map[string]driver.Store{
		"all": able.Store{}, "watches": memory.New(), "polled": memory.NewPolled(), "none": struct{ driver.Store }{memory.New()},
	} {
		t.Run(name, func(t *testing.T) {
			outer := mustLegacy(t, inner)
			got, want := able.Answers(t.Context(), outer), able.Answers(t.Context(), inner)
			if _, watches := want["Watcher"]; watches {
				want["Peers"] += "" // S3lect processes are not pushed to
			}
			findings, err := driver.AbilitiesOf(outer).Inspector.Inspect(t.Context(), time.Second)
			if err != nil || len(findings) == 0 || findings[len(findings)-1].Setting != "legacy" {
				t.Errorf("findings %v, %v", findings, err)
			}
			if inspector := driver.AbilitiesOf(inner).Inspector; inspector != nil {
				if own, err := inspector.Inspect(t.Context(), time.Second); err != nil || !slices.Equal(findings[:len(findings)-1], own) {
					t.Errorf("findings %v, want also %v", findings, own)
				}
			}
			delete(got, "Inspector")
			delete(want, "Inspector")
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

func TestPushesAreTranslated(t *testing.T) {
	inner := memory.New()
	outer := mustLegacy(t, inner)
	var seen []string
	stop, err := driver.AbilitiesOf(outer).Watcher.Watch(t.Context(), "k", func(e driver.Entry) { seen = append(seen, string(e.Value)) })
	must(t, err)
	defer stop()
	inner.Put("k", []byte(`{"leaderID":"server-001","leaderAddr":"","lastUpdated":"2024-10-27T10:30:45Z"}`))
	inner.Put("k", []byte("bytes of somebody else"))
	inner.Delete("k")
	if len(seen) != 3 || !strings.Contains(seen[0], `"incarnation":"s3lect:`) || seen[1] != "bytes of somebody else" || seen[2] != "" {
		t.Errorf("pushed %q", seen)
	}
}

// A leader of S3lect has its own name and cannot be asked to hand over. Following it causes no
// alarm.
func TestFollowingAnS3lectLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.NewPolled()
		var alarms []tenure.Event
		e, err := tenure.New(mustLegacy(t, inner), "k", tenure.Config{
			ID: "new", OnEvent: func(e tenure.Event) {
				if e.Kind == tenure.EventAlarm {
					alarms = append(alarms, e)
				}
			},
		})
		must(t, err)
		inner.Put("k", []byte(`{"leaderID":"server-001","leaderAddr":"10.0.1.42:8443","lastUpdated":"2024-10-27T10:30:45Z"}`))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s, err := e.Wait(ctx, func(s tenure.Status) bool { return s.Known })
		if err != nil || s.Leader.ID != "server-001" || s.Leader.Address != "10.0.1.42:8443" {
			t.Errorf("leader %+v, %v", s.Leader, err)
		}
		before, _ := inner.Read(ctx, "k")
		if err := e.HandOver(ctx, ""); err == nil || !strings.Contains(err.Error(), "S3lect") {
			t.Errorf("hand-over: %v", err)
		}
		if after, _ := inner.Read(ctx, "k"); after.Version != before.Version {
			t.Errorf("its lockfile was changed to %s", after.Value)
		}
		began := time.Now()
		term, err := e.Campaign(ctx)
		must(t, err)
		if waited := time.Since(began); waited < 15*time.Second || waited > 40*time.Second || term.Token() < 2 {
			t.Errorf("token %d after %v", term.Token(), waited)
		}
		if err := term.Resign(ctx); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(alarms) > 0 {
			t.Errorf("alarm: %v", alarms[0].Cause)
		}
	})
}
