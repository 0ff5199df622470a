package election

import (
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/driver"
)

const (
	// leasesInTTL: a record must outlive its lease also when renewals fail, and when the server's
	// clock, by which records expire, is set.
	leasesInTTL = 3
	// withoutTTL is the lease in a bucket without a TTL.
	withoutTTL = 15 * time.Second
	// reserves: a tenth of the lease is reserved for a leader's work to stop.
	reserves = 10
	// splay is the same as in nats-kv-leader-elect.
	splay = 5 * time.Second
)

// interval returns the time between two campaigns, as in nats-kv-leader-elect: 75 % of the TTL.
func interval(lease time.Duration) time.Duration { return leasesInTTL * lease * 3 / 4 }

// leaseFor returns the lease for a bucket, or an error if none is possible.
func (o *options) leaseFor(store driver.Store) (time.Duration, error) {
	third := (o.ttl / leasesInTTL).Truncate(time.Millisecond)
	switch {
	case o.ttl == 0 && o.migrating:
		return 0, errors.New("Migrating: the bucket has no TTL, without which no candidate of nats-kv-leader-elect works: leave " +
			"out Migrating, or look whether this is their bucket")
	case o.ttl > driver.MaxLease && o.migrating:
		return 0, fmt.Errorf("Migrating: the bucket's TTL is %v, with which no candidate of nats-kv-leader-elect works: it must be "+
			"at most %v", o.ttl, driver.MaxLease)
	case o.ttl != 0 && o.lease > third:
		return 0, fmt.Errorf("a lease of %v is longer than a third of the bucket's TTL of %v, so that the record could expire under "+
			"its leader: %s", o.lease, o.ttl, o.remedy(leasesInTTL*o.lease))
	case o.lease != 0:
		return o.lease, nil
	case o.ttl == 0:
		return withoutTTL, nil
	}
	return third, o.checkTTL(driver.AbilitiesOf(store).MinLease())
}

// checkTTL refuses a TTL that is too short or too long for a lease.
func (o *options) checkTTL(least time.Duration) error {
	switch {
	case o.ttl < leasesInTTL*least:
		return fmt.Errorf("the bucket's TTL is %v; it must be at least %v, since a record has to outlive its lease, of at least %v, "+
			"three times over: %s", o.ttl, leasesInTTL*least, least, o.remedy(30*time.Second))
	case o.ttl > leasesInTTL*driver.MaxLease:
		return fmt.Errorf("the bucket's TTL is %v, which would make a lease of more than %v: %s, or set a lease by WithLease",
			o.ttl, driver.MaxLease, o.remedy(time.Minute))
	}
	return nil
}

func (o *options) remedy(ttl time.Duration) string {
	return fmt.Sprintf("nats kv edit %s --ttl %ds", o.bucket, (ttl+time.Second-1)/time.Second)
}
