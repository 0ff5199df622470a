// Package timing has the times of an election that few programs need: those that enforce the end of
// a lease from outside, as `tenure run` does for another program, or that show how long a failover
// takes.
package timing

import (
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/bridge"
	"github.com/tenure-go/tenure/internal/protocol"
)

// Margin returns the part of a lease that its holder does not use. Because of it the term ends, on
// the holder's own clock, before any other candidate can have waited for the whole lease. It is the
// sum of StopWithin, Tuning.TimerLateness, and Lease * 2r/(1+r), where r is Tuning.Drift. The last
// part allows for clocks that run at different rates. Unset fields count with their defaults. Use
// it only with a Config that tenure.New accepts.
func Margin(c tenure.Config) time.Duration {
	c = c.WithDefaults()
	return protocol.Margin(c.Lease, c.Tuning.Drift, c.Tuning.TimerLateness, c.StopWithin)
}

// WorstFailover returns the longest time from a leader's last renewal until another candidate
// claims leadership, if the leader dies and the store answers at once. If the store itself pushes
// each change, the result is the lease. Otherwise, and always with a store of package peer, a nil
// store or Tuning.NoWatch, the longest time between two reads is added:
//
//	pushed:  Lease
//	polled:  Lease + min(1.1 * Tuning.PollStable, Lease)
//
// The result is by the clock of the member that claims. In true time it is longer:
//
//   - That clock may run slower: divide the result by 1 - Drift.
//   - A time daemon that slews that clock adds at most 9 % of the divided result.
//   - The store takes time to answer: add twice its latency, and the lateness of timers.
//   - Where there is a Nominator and no nominee claims, add Precedence.
//
// If the store is polled, a failover takes half a PollStable less on average, and with many
// candidates the first of them claims far sooner. Unset fields count with their defaults. Use it
// only with a Config that tenure.New accepts and that all members have.
//
// After a release there is no lease to wait for. A successor claims at once if changes are pushed,
// and otherwise after its next read, which comes within min(1.1 * Tuning.PollStable, Lease).
func WorstFailover(c tenure.Config, store driver.Store) time.Duration {
	c = c.WithDefaults()
	if driver.AbilitiesOf(store).Pushes() && !c.Tuning.NoWatch {
		return c.Lease
	}
	gap := max(c.Tuning.PollStable, c.Tuning.Poll)
	return c.Lease + min(gap+gap/10, c.Lease)
}

// ShortestLease returns the shortest sensible lease on a store whose answers take so long, in whole
// seconds. It leaves two and a half times took for one request, with the other settings as they
// are, and is not below the shortest lease of the store. ShortLeaseError.Least follows the same
// rule. It returns 0 if not even driver.MaxLease is enough. For took use a high percentile of the
// slower of reads and writes. The rule is:
//
//	(Lease - Margin - Tuning.Renew) / 2 >= 2.5 * took
func ShortestLease(c tenure.Config, store driver.Store, took time.Duration) time.Duration {
	return bridge.LeastLease(c, driver.AbilitiesOf(store).MinLease()-1, took)
}

// Renewed returns a channel that is closed when Term.Remaining may have changed by more than the
// passing of time: when a renewal is sent or confirmed, or the term has ended. Use it if another
// process enforces the deadline and must be told of each change. Call it before Remaining, and no
// change is missed. For a nil term the channel is closed.
func Renewed(t *tenure.Term) <-chan struct{} { return bridge.Renewed(t) }
