package metrics

import (
	"slices"
	"sync/atomic"
	"time"
)

// Kind says how the values of a metric behave.
type Kind uint8

// The kinds.
const (
	Gauge     Kind = iota // goes up and down
	Counter               // only grows, from 0 at Sample.Since
	Histogram             // counts observations in buckets
)

// Scope says whether a metric has a series for each election.
type Scope uint8

// The scopes.
const (
	// Election has a series for each election. In a summary it has one: the sum over all elections.
	Election Scope = iota
	// Detail has a series for each election. A summary leaves it out, because its sum has no
	// meaning.
	Detail
	// Process has one value for all elections of a Set.
	Process
)

// Definition describes one metric. Adapters translate it.
type Definition struct {
	// Name is the name in Prometheus, with the unit if there is one, and "_total" for a Counter.
	Name string
	Help string
	Kind Kind
	// Unit is "s" for seconds, or empty.
	Unit  string
	Scope Scope
	// Key is the label for the name of the election; empty if Scope is Process.
	Key string
	// JobKey is the label for the name of a scheduled job, if there is a series for each.
	JobKey string
	// Label is the next label, and Label2 the one after it; empty: there is none. All their values
	// are known beforehand, and each has a sample from the beginning.
	Label, Label2 string
	// Bounds are the upper bounds of a Histogram's buckets in Unit, without the infinite one.
	Bounds []float64

	// read yields the samples of the elections of one Recorder, or of the Set where Scope is
	// Process.
	read func(r *reading, yield func(value string, number float64))
	// readJob yields those of one job, where JobKey is set.
	readJob func(r *jobReading, yield func(value string, number float64))
	// readAgent returns the value of a metric of the agent.
	readAgent func(*AgentState) float64
}

// key is the label of an election's name, except in leader_election_master_status.
const key = "election"

// definitions are all metrics except those of jobs, of an agent and of store calls.
var definitions = []*Definition{
	{
		Name: "tenure_leading", Key: key,
		Help: "1 while this process may act as the leader, else 0.",
		read: func(r *reading, yield func(string, float64)) { yield("", float64(r.leading())) },
	},
	{
		Name: "leader_election_master_status", Key: "name", Scope: Detail,
		Help: "The same as tenure_leading, under the name that boards for Kubernetes use.",
		read: func(r *reading, yield func(string, float64)) { yield("", float64(r.leading())) },
	},
	{
		Name: "tenure_term", Key: key, Scope: Detail,
		Help: "The highest term that this process knows; 0 before the first.",
		read: func(r *reading, yield func(string, float64)) { yield("", float64(r.term)) },
	},
	{
		Name: "tenure_terms_ended_total", Kind: Counter, Key: key, Label: "reason",
		Help: "Terms of this process that ended, by the reason.",
		read: func(r *reading, yield func(string, float64)) { counts(ends[:], r.ended[:], yield) },
	},
	{
		Name: "tenure_leaderless_seconds_total", Kind: Counter, Unit: "s", Key: key,
		Help: "Time in which this process took part and saw no leader.",
		read: func(r *reading, yield func(string, float64)) {
			yield("", time.Duration(r.leaderless.Load()).Seconds())
		},
	},
	{
		Name: "tenure_renewals_total", Kind: Counter, Key: key, Label: "left",
		Help: "Confirmed renewals, by how much of the usable lease was left: half or more, a quarter or more, or less.",
		read: func(r *reading, yield func(string, float64)) { counts(lefts[:], r.renewed[:], yield) },
	},
	{
		Name: "tenure_lease_seconds", Unit: "s", Key: key, Scope: Detail,
		Help: "The lease that this process is configured with.",
		read: func(r *reading, yield func(string, float64)) { yield("", r.lease.Seconds()) },
	},
	{
		Name: "tenure_margin_seconds", Unit: "s", Key: key, Scope: Detail,
		Help: "The part of the lease that a leader does not use.",
		read: func(r *reading, yield func(string, float64)) { yield("", r.margin.Seconds()) },
	},
	{
		Name: "tenure_overdue", Key: key,
		Help: "1 while a term of this process is over and its work is not known to have stopped, else 0.",
		read: func(r *reading, yield func(string, float64)) { yield("", float64(r.overdue)) },
	},
	{
		Name: "tenure_unhealthy", Key: key,
		Help: "1 while this process could not take over, or its work is overdue, else 0.",
		read: func(r *reading, yield func(string, float64)) { yield("", float64(r.unhealthy)) },
	},
	{
		Name: "tenure_alarms_total", Kind: Counter, Key: key, Label: "kind",
		Help: "Alarms: the record cannot be used, or the history of the store is not what it was.",
		read: func(r *reading, yield func(string, float64)) { counts(alarmKinds[:], r.alarms[:], yield) },
	},
	{
		Name: "tenure_elections", Scope: Process, Label: "role",
		Help: "Elections of this process, by its role in them.",
		read: func(r *reading, yield func(string, float64)) {
			for i, n := range r.roles {
				yield(roles[i], float64(n))
			}
		},
	},
	{
		Name: "tenure_events_dropped_total", Kind: Counter, Scope: Process,
		Help: "Events that were dropped because OnEvent or the log was too slow.",
		read: func(r *reading, yield func(string, float64)) { yield("", float64(r.set.dropped.Load())) },
	},
}

// The metrics of the store's calls.
var (
	calls = Definition{
		Name: "tenure_store_calls_total", Kind: Counter, Scope: Process, Label: "operation", Label2: "outcome",
		Help: "Calls of the store, by operation and outcome.",
	}
	callDuration = Definition{
		Name: "tenure_store_call_duration_seconds", Kind: Histogram, Unit: "s", Scope: Process, Label: "operation",
		Help:   "Time from the decision to call the store until its answer; calls that got no answer in time do not count.",
		Bounds: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
	}
)

// Definitions returns all metrics, in the order in which Gather yields their samples. Do not change
// them.
func Definitions() []*Definition {
	return append(slices.Concat(definitions, jobDefinitions, agentDefinitions), &calls, &callDuration)
}

// counts yields one sample for each value of a label.
func counts(values []string, n []atomic.Uint64, yield func(string, float64)) {
	for i := range n {
		yield(values[i], float64(n[i].Load()))
	}
}

// Role is the part of this process in an election, as tenure_elections counts them.
type Role uint8

// The roles.
const (
	Idle       Role = iota // it takes no part
	Following              // it takes part, and another member leads
	Leaderless             // it takes part, and sees no leader
	Leading                // it leads
)

var roles = [...]string{"idle", "following", "leaderless", "leading"}

// End is why a term ended.
type End uint8

// The reasons why a term ends.
const (
	Released   End = iota // its work stopped, and the lease was given back
	Expired               // no renewal was confirmed in time
	Deposed               // the store showed another state than this leader's
	Overrun               // its work did not stop when asked, or ended in a panic
	HandedOver            // as Released, after a request to hand over
)

var ends = [...]string{"released", "expired", "deposed", "overrun", "handed-over"}

// Alarm is the kind of an alarm.
type Alarm uint8

// The kinds of alarm.
const (
	BadRecord  Alarm = iota // the value or its term stops the election
	BadHistory              // the store lost or recreated the record, or shows an older one
)

var alarmKinds = [...]string{"record", "history"}

// Operation is a kind of store call.
type Operation uint8

// The operations.
const (
	Read Operation = iota
	Write
	Watch
)

var operations = [...]string{"read", "write", "watch"}

// Outcome is how a store call ended.
type Outcome uint8

// The outcomes.
const (
	OK         Outcome = iota
	Conflict           // another write came first
	Denied             // the client lacks the right
	Timeout            // no answer came in time
	PoolBusy           // no connection of the client was free in time
	Connecting         // no connection was open in time
	Failed             // any other error
)

var outcomes = [...]string{"ok", "conflict", "denied", "timeout", "pool-busy", "connecting", "failed"}

// lefts are the bands of tenure_renewals_total, from the best.
var lefts = [...]string{"half", "quarter", "less"}

// band returns the index in lefts of a part of the usable lease.
func band(left float64) int {
	switch {
	case left >= 0.5:
		return 0
	case left >= 0.25:
		return 1
	}
	return 2
}
