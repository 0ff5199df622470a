package neli

import (
	"time"

	"github.com/tenure-go/tenure"
)

const (
	// leastTimeout keeps the lease above the shortest that kafkalog allows. mostTimeout keeps the
	// session at the longest that brokers allow by default.
	leastTimeout = time.Second
	mostTimeout  = 10 * time.Minute
	// sessions is how many heartbeat timeouts a session of the group lasts.
	sessions = 3
	// beats is the number of the group's heartbeats in a session, unless heartbeat.interval.ms sets
	// it.
	beats = 5
	// leastAnswer and mostAnswer bound the time for a broker's answer: a third of the lease.
	leastAnswer = 200 * time.Millisecond
	mostAnswer  = 2 * time.Second
)

// leaseFor returns the lease that is the timeout plus the margin: a leader that is cut off stops
// after the timeout, and the margin is left. The margin depends on the lease, but grows far more
// slowly, so the loop ends.
func leaseFor(timeout time.Duration) time.Duration {
	lease := timeout.Truncate(time.Millisecond)
	for {
		longer := (timeout + tenure.Config{Lease: lease}.Margin()).Truncate(time.Millisecond)
		if longer <= lease {
			return lease
		}
		lease = longer
	}
}

func answerWithin(lease time.Duration) time.Duration {
	return min(max(lease/3, leastAnswer), mostAnswer)
}

// heartbeat returns the time between two requests of a member of the group: at most a third of the
// session.
func heartbeat(c Config, p properties) time.Duration {
	if p.heartbeat == 0 {
		return sessions * *c.HeartbeatTimeout / beats
	}
	return max(min(p.heartbeat, *c.HeartbeatTimeout), leastBeat)
}

// leastBeat is the least Heartbeat of package group.
const leastBeat = 50 * time.Millisecond
