package natskv

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// atMigration takes the place of what is said of the TTL otherwise, which old candidates need.
func atMigration(s survey, lease time.Duration) []driver.Finding {
	const setting = "migrating"
	found := one(driver.Warning, setting, "while candidates of nats-kv-leader-elect take part, a deleted record lets one of them lead "+
		"beside a leader that has not heard of it, and one that cannot reach the server does not stop",
		"leave out Migrating once the last of them is gone")
	switch most := s.info.Config.MaxAge / leasesInTTL; {
	case s.info.Config.MaxAge == 0:
		found = append(found, one(driver.Unsafe, "ttl", "without a TTL no candidate of nats-kv-leader-elect follows one that has crashed",
			"put it back until the last of them is gone, or leave out Migrating if it is")...)
	case lease > most:
		found = append(found, one(driver.Unsafe, "ttl", fmt.Sprintf("a lease of %v is longer than a third of the TTL of %v, by which "+
			"old candidates take over: nobody can lead with it", lease, s.info.Config.MaxAge),
			fmt.Sprintf("set the lease to %v or less while they take part", most.Truncate(time.Millisecond)))...)
	}
	if s.mute {
		found = append(found, one(driver.Advice, setting, "over a handle a release cannot be marked for candidates of "+
			"nats-kv-leader-elect: they wait until the released record expires", "use natskv.Open")...)
	}
	if s.info.Config.MarkerTTL > 0 {
		found = append(found, one(driver.Warning, "limit_marker_ttl", "candidates of nats-kv-leader-elect with an older client library "+
			"take the marker of an expired key for a leader", "make sure that theirs knows such markers, or "+s.edit("--marker-ttl 0"))...)
	}
	return found
}
