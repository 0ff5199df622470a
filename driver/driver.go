// Package driver is the contract between Tenure and the store that holds its elections. It is for people who write
// adapters; users of an election never call it.
//
// A store is reduced to one linearizable compare-and-swap register per election, a cell named by a key. The whole of an
// adapter is [Store]; everything else here is optional and found by a type assertion. The conformance kit in package
// drivertest turns this contract into tests.
//
// # What an adapter must keep
//
//  1. One attempt per call. No retries, no loops, no timers, no logs, no work that outlives the call. Retries of the
//     client library are off for writes: a retried compare-and-swap that was applied comes back as a conflict.
//  2. The call ends soon after its context does, whatever the network does. Where the client library cannot be made to,
//     the call runs aside and is abandoned, a bounded number of them at a time: package aside does that.
//  3. [Store.CompareAndSwap] is atomic among all writers, in all processes. A check followed by a write is not.
//  4. Within one history of a store, a version never recurs for a write of other bytes. Absence is
//     the one exception: it may come back when a key is purged. A hash of the content will do,
//     since elections never write the same bytes twice. But networks may deliver a request twice,
//     so where the version is a hash, what was put over an absence may recur with it; elections
//     know that. A store that is deleted and recreated begins another history. Versions of the
//     former one may recur there only if the adapter tells the histories apart: each has its own
//     [Entry.Era]. Versions may also recur where a store is restored from a backup or loses its
//     last writes, which no adapter can see. Elections therefore read before they replace a state
//     that they saw long ago.
//  5. Outcomes are told apart honestly. An error that is neither [ErrConflict] nor [ErrDenied] means that the write may
//     have been applied already, may be applied later, or never. When in doubt an adapter says so by any other error.
//  6. Values up to [MaxValue] bytes are kept byte for byte. An adapter hands out copies, also to watchers, and keeps none of
//     the bytes that it was given.
//  7. A context that has ended before the call applies nothing and is no conflict.
//  8. All methods may be called from many goroutines at once.
//
// Reads need not be fresh: a stale one costs time, never safety.
package driver

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxValue is the largest value in bytes that a store must keep and that an election ever writes.
const MaxValue = 4096

var (
	// ErrConflict says that this request was refused because the cell no longer had the expected version, or is about to
	// lose it to a write on its way to the replicas. An earlier delivery of the same request may have been applied:
	// networks and proxies replay. The caller reads to find out.
	ErrConflict = errors.New("version conflict")

	// ErrDenied says that the store refused the request for want of rights. Waiting does not help; a person must act.
	ErrDenied = errors.New("permission denied")
)

// Version names one state of a cell. It is opaque: versions can be compared for equality and handed back, nothing else.
// The empty Version means absent, and never written as far as the store can tell.
type Version string

// Entry is the state of a cell.
type Entry struct {
	// Value is what the cell holds; nil or empty where it is absent.
	Value []byte
	// Version is what CompareAndSwap expects as prev in order to replace this state. An absence that the store can
	// name has a version too: a delete marker, or the state before the first write. One that it cannot name has the
	// empty Version, from which a write succeeds while the cell is absent.
	Version Version
	// Floor is the store's word that, up to this state, no term under this key was ever above it, for as long as the
	// history of the store is its own: a stream sequence, a log offset, the store's clock in milliseconds. Terms are
	// chosen at most one above it, so an adapter may return any counter of the store that every write raises, as it
	// stood at this state or later; a clock must tick between any two writes of a key. Zero: the store vouches for
	// nothing.
	Floor uint64
	// Ceiling is for a store in which terms above Floor may be good, because other members know more
	// than this adapter sees: no good term is above it. A term more than 2^40 above the larger of
	// the two, and above all terms that a member has seen, makes a record malformed. So set it if
	// Floor can be far too low, such as a clock that is not set. Zero: Floor says it. Where both are zero the store knows nothing, and terms up to 2^52 count as good.
	Ceiling uint64
	// Pristine says that the cell is absent, and that a CompareAndSwap from this Version succeeds only if nothing was
	// ever written under the key (or in the whole store): the store itself checks that at the moment of the write.
	// Such a cell may be claimed without waiting. A store that cannot check this leaves it false.
	Pristine bool
	// Era names the history of the store that this state is of. Stores that were deleted and recreated
	// have different eras. In a new era an election believes nothing that it knew, not even an equal
	// version, and waits out what it finds. An adapter whose versions recur in a recreated store must
	// tell the era in each entry, pushed or read. Zero: it cannot tell.
	Era uint64
	// Notice says, for people, what the store knows of how a value came to be missing: deleted, purged, expired. It goes with
	// the event that tells of it.
	Notice error
}

// Absent reports whether the cell holds no value: never written, purged, expired or deleted.
func (e Entry) Absent() bool { return len(e.Value) == 0 }

// Store is a set of compare-and-swap registers.
type Store interface {
	// Read returns the state of the cell. An absent cell is an Entry without a Value, not an error.
	// It returns an error that wraps ErrDenied for want of rights, and any other error if the state is not known.
	Read(ctx context.Context, key string) (Entry, error)

	// CompareAndSwap replaces the state of the cell by value if its version still is prev, and returns the version
	// of what it wrote. It returns an error that wraps ErrConflict if the version was another, ErrDenied for want of
	// rights, and any other error if the outcome is not known.
	CompareAndSwap(ctx context.Context, key string, prev Version, value []byte) (Version, error)
}

// Watcher is a Store that pushes changes. What it pushes are hints: they may be late, doubled, out of order or missing,
// and the election reads when it hears nothing. All watches of one store share one subscription and at most a fixed
// number of goroutines, so that ten thousand of them are cheap.
type Watcher interface {
	// Watch calls see for changes of the cell until stop is called; it may call it for the present state first.
	// The context bounds the set-up alone. See returns at once, takes no lock of the store's and may be called
	// concurrently. What changes after stop returned is not told, though one call may be about to begin; stop may be
	// called more than once and from see.
	// Errors are as for Read.
	Watch(ctx context.Context, key string, see func(Entry)) (stop func(), err error)
}

// Hearsay is a Watcher whose pushes come from members, and so may reach some and not others. Members of its elections
// do not count on one another's having heard.
type Hearsay interface {
	Watcher
	// Hearsay is a mark: it does nothing.
	Hearsay()
}

// Bounded is a Store that says what it cannot hold. An election asks before it starts.
type Bounded interface {
	// MinLease is the shortest lease that makes sense on this store.
	MinLease() time.Duration
	// CheckKey returns an error that names the fault if the store cannot hold a cell under this key.
	CheckKey(key string) error
}

// Capped is a Store in which a longer lease than it says would do harm, such as where records expire.
type Capped interface {
	// MaxLease is the longest lease that may be held, as far as it is known by now.
	MaxLease() time.Duration
}

// Inspector is a Store that can say what about itself is unsafe for elections.
type Inspector interface {
	// Inspect looks at the store's settings, for elections with leases up to the one given. Where settings tell
	// nothing it may try the store out on cells of its own, which it removes; it never touches an election's.
	// No finding means that nothing unsafe is known. Errors are as for Read.
	Inspect(ctx context.Context, lease time.Duration) ([]Finding, error)
}

// Rights is a Store that finds out whether it may write before it has to. An election asks when it
// campaigns and another candidate leads, so that a standby does not look healthy that could never
// take over.
type Rights interface {
	// CheckRights returns an error that wraps ErrDenied if the right to write under this key is
	// missing, nil if it is not or if this store cannot tell, and any other error if there was no
	// answer. It makes one request, which changes nothing under any key, whatever the server makes
	// of it. Elections that share a store (Election.Sibling) ask for one key and take the answer for
	// all of theirs.
	CheckRights(ctx context.Context, key string) error
}

// Identifier is a Store that names the incarnations of the elections made on it, because it can prove later that a record
// is theirs: a name may be a public key.
type Identifier interface {
	// Incarnation returns a new name, 1 to 64 bytes of text, that nobody else ever gets. It is called once for each
	// election made.
	Incarnation() string
}

// Nominator says from outside of an election which of its candidates has precedence, such as the one to which a consumer
// group gave a partition. It is no lease: two may be nominated at once, or none, and the election keeps them apart. But one that
// no longer knows says no within a bounded time, because a leader that is the nominee is not asked to leave. An election takes
// one in its Config; a Nominator serves one candidate.
type Nominator interface {
	// Nominate calls see with whether this candidate is the nominee, soon with what is known and then at each change, one
	// call at a time, until stop is called. See returns at once. Stop does not wait for a call of see that has begun. The
	// election calls Nominate and stop in turn, never two of them at once.
	Nominate(see func(nominated bool)) (stop func())
}

// Attentive is a Nominator that may find out late who is named, and sooner if it knows that the nominee is waited for.
type Attentive interface {
	Nominator
	// Vacant says whether nobody leads, at each change, from a beginning in which somebody does. It returns at once. The
	// election never calls it together with Nominate or stop.
	Vacant(vacant bool)
}

// Gate is a Nominator beside which something else may lead that the election does not know of, such
// as members of another kind of the same consumer group. It says when this candidate may lead at
// all.
type Gate interface {
	Nominator
	// MayLead reports whether this candidate may lead now. While it may not it claims nothing, and
	// if it leads it is asked to finish. The election asks before each of its steps, under its
	// lock: the answer is computed at once, from the clock, and without a call of the election. A
	// new answer is followed by a call of the see of Nominate.
	MayLead() bool
}

// Severity ranks a finding.
type Severity int

const (
	// Advice is worth knowing: slower or dearer than it need be.
	Advice Severity = iota + 1
	// Warning can cost a leader, a term's monotony or time when something else fails too.
	Warning
	// Unsafe can make two leaders, or none ever.
	Unsafe
)

// String names the severity in lower case.
func (s Severity) String() string {
	switch s {
	case Advice:
		return "advice"
	case Warning:
		return "warning"
	case Unsafe:
		return "unsafe"
	}
	return fmt.Sprintf("severity(%d)", int(s))
}

// Finding is one thing that Inspect found.
type Finding struct {
	Severity Severity
	// Setting is the store's own name for what was looked at, such as "replicas".
	Setting string
	// Problem says in one sentence what may happen.
	Problem string
	// Remedy says what to do, as a command where there is one.
	Remedy string
}

// String is one line: severity, setting, problem, remedy.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Severity, f.Setting, f.Problem, f.Remedy)
}
