package mixed

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// Inspect replaces the usual findings about the TTL, because old candidates need a TTL.
func (translator) Inspect(b natskv.SharedBucket, lease time.Duration) []driver.Finding {
	const setting = "migrating"
	found := []driver.Finding{{
		Severity: driver.Warning, Setting: setting,
		Problem: "while candidates of nats-kv-leader-elect take part, a deleted record lets one of them lead " +
			"beside a leader that has not heard of it, and one that cannot reach the server does not stop",
		Remedy: "leave out Migrating once the last old candidate is gone",
	}}
	switch most := b.TTL / leasesInTTL; {
	case b.TTL == 0:
		found = append(found, driver.Finding{
			Severity: driver.Unsafe, Setting: "ttl",
			Problem: "without a TTL no candidate of nats-kv-leader-elect takes over after a crash",
			Remedy:  "set the TTL again while old candidates run, or leave out Migrating if none is left",
		})
	case lease > most:
		found = append(found, driver.Finding{
			Severity: driver.Unsafe, Setting: "ttl",
			Problem: fmt.Sprintf("a lease of %v is longer than a third of the TTL of %v, by which "+
				"old candidates take over: nobody can lead with it", lease, b.TTL),
			Remedy: fmt.Sprintf("set the lease to %v or less while they take part", most.Truncate(time.Millisecond)),
		})
	}
	if !b.Marks {
		found = append(found, driver.Finding{
			Severity: driver.Advice, Setting: setting,
			Problem: "over a handle a release cannot be marked for candidates of " +
				"nats-kv-leader-elect: they wait until the released record expires",
			Remedy: "use natskv.Open",
		})
	}
	if b.MarkerTTL > 0 {
		found = append(found, driver.Finding{
			Severity: driver.Warning, Setting: "limit_marker_ttl",
			Problem: "candidates of nats-kv-leader-elect with an older client library " +
				"take the marker of an expired key for a leader",
			Remedy: "make sure that theirs knows such markers, or nats kv edit " + b.Name + " --marker-ttl 0",
		})
	}
	return found
}
