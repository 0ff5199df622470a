// Package driver is the contract between Tenure and the store that holds its elections. Use it to
// write an adapter for a store; users of an election never call it.
//
// A store is reduced to one linearizable compare-and-swap register per election, a cell named by a
// key. An adapter must implement [Store]. All other interfaces are optional and found by a type
// assertion. The conformance kit in package drivertest tests this contract.
//
// # Rules for adapters
//
//  1. One attempt per call. No retries, no loops, no timers, no logs, no work that outlives the
//     call. Retries of the client library are off for writes: a retried compare-and-swap that was
//     applied comes back as a conflict.
//  2. The call ends soon after its context does, whatever the network does. If the client library
//     cannot guarantee this, the call runs in its own goroutine and is abandoned, a bounded number
//     of them at a time: package abandon does that.
//  3. [Store.CompareAndSwap] is atomic among all writers, in all processes. A check followed by a
//     write is not.
//  4. Within one history of a store, a version never recurs for a write of other bytes. Absence is
//     the one exception: it may come back when a key is purged. A hash of the content is enough,
//     since elections never write the same bytes twice. But networks may deliver a request twice.
//     So where the version is a hash, the version of a write over an absence may recur with it;
//     elections allow for that. A store that is deleted and recreated begins another history.
//     There, versions may recur only if the adapter distinguishes the histories: each has its own
//     [Entry.Era]. Versions may also recur where a store is restored from a backup or loses its
//     last writes, which no adapter can see. Elections therefore read before they replace a state
//     that they saw long ago.
//  5. Outcomes are distinguished correctly. An error that is neither [ErrConflict] nor [ErrDenied]
//     means that the write may have been applied already, may be applied later, or never. When in
//     doubt, an adapter returns any other error.
//  6. Values up to [MaxValue] bytes are kept byte for byte. An adapter hands out copies, also to
//     watchers, and keeps none of the bytes that it was given.
//  7. A call whose context has ended before it applies nothing, and is not a conflict.
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
	// ErrConflict reports that this request was refused because the cell no longer had the expected
	// version, or is about to lose it to a write on its way to the replicas. An earlier delivery of
	// the same request may have been applied: networks and proxies replay. The caller reads to find
	// out.
	ErrConflict = errors.New("version conflict")

	// ErrDenied reports that the store refused the request because rights are missing. Waiting does
	// not help: an operator must fix it.
	ErrDenied = errors.New("permission denied")
)

// Version names one state of a cell. It is opaque: compare versions for equality and hand them
// back, nothing else. The empty Version means absent, and never written as far as the store can
// tell.
type Version string

// Entry is the state of a cell.
type Entry struct {
	// Value is the value of the cell; nil or empty if it is absent.
	Value []byte
	// Version is the value that CompareAndSwap expects as prev in order to replace this state. An
	// absence that the store can name has a version too: a delete marker, or the state before the
	// first write. One that it cannot name has the empty Version, from which a write succeeds while
	// the cell is absent.
	Version Version
	// Floor is an upper bound on every earlier term under this key up to this state, which the
	// store vouches for within one history: a stream sequence, a log offset, the store's clock in
	// milliseconds. Terms are chosen at most one above it. So an adapter may return any counter of
	// the store that every write raises, as it stood at this state or later. A clock must tick
	// between any two writes of a key. Zero: the store vouches for nothing.
	Floor uint64
	// Ceiling is for a store in which terms above Floor may be good, because other members know
	// more than this adapter sees: no good term is above it. A term that is 2^40 or more above the
	// larger of the two makes a record malformed, and no claim takes one. So set Ceiling if Floor
	// can be far too low, as with a clock that is not set. Zero: Floor is the bound. Where both are
	// zero the store knows nothing, and 2^52 is the larger.
	Ceiling uint64
	// Pristine reports that the cell is absent, and that a CompareAndSwap from this Version
	// succeeds only if nothing was ever written under the key (or in the whole store): the store
	// itself checks that at the moment of the write. Such a cell may be claimed without waiting. A
	// store that cannot check this leaves it false.
	Pristine bool
	// Era names the history of the store that this state belongs to. Stores that were deleted and
	// recreated have different eras, unless their versions never recur. In a new era an election
	// trusts nothing that it knew, not even an equal version, and waits out the record that it
	// finds. An adapter whose versions recur in a recreated store must set the era in each entry,
	// pushed or read. Zero: the store cannot tell.
	Era uint64
	// Unproven reports that later writes may be missing, though the store does not know of any:
	// this state was written in another era than the present one, by a primary whose last writes
	// the promoted standby may lack, or it was put there by a program that follows no rule of the
	// store. Every member, also one that has just started, waits it out like the first record in a
	// new era. A store that compares the eras sets it; such a store also refuses a CompareAndSwap
	// from a version that was read in another era.
	Unproven bool
	// Unverified marks a push that others than the writers of the store can have sent, such as a
	// notification without access control. It can postpone a read, or cause one, and nothing else:
	// no claim and no term follows from it, and no member believes a release. In a Read it has no
	// meaning.
	Unverified bool
	// Notice describes, for operators, how a value came to be missing, as far as the store knows:
	// deleted, purged, expired. The event that reports the loss carries it.
	Notice error
}

// Absent reports whether the cell holds no value: never written, purged, expired or deleted.
func (e Entry) Absent() bool { return len(e.Value) == 0 }

// Store is a set of compare-and-swap registers.
type Store interface {
	// Read returns the state of the cell. An absent cell is an Entry without a Value, not an error.
	// It returns an error that wraps ErrDenied if rights are missing, and any other error if the
	// state is not known.
	Read(ctx context.Context, key string) (Entry, error)

	// CompareAndSwap replaces the state of the cell by value if its version still is prev, and
	// returns the version of the new state. It returns an error that wraps ErrConflict if the
	// version was another, ErrDenied if rights are missing, and any other error if the outcome is
	// not known.
	CompareAndSwap(ctx context.Context, key string, prev Version, value []byte) (Version, error)
}

// Watcher is a Store that pushes changes. Pushes are hints: they may be late, doubled, out of order
// or missing, and the election reads when it hears nothing. All watches of one store share one
// subscription and at most a fixed number of goroutines, so that ten thousand of them are cheap.
type Watcher interface {
	// Watch calls see for changes of the cell until stop is called; it may call it for the present
	// state first. The context bounds only the set-up. See returns at once, takes no lock of the
	// store's and may be called concurrently. Changes after stop returned are not pushed, though
	// one call may be about to begin. Stop may be called more than once and from see. Errors are as
	// for Read.
	Watch(ctx context.Context, key string, see func(Entry)) (stop func(), err error)
}

// PeerPushed is a Watcher whose pushes come from members, and so may reach some and not others.
// Members of its elections do not assume that the others have received a push.
type PeerPushed interface {
	Watcher
	// PeerPushed marks the interface. It does nothing.
	PeerPushed()
}

// Bounded is a Store with limits on leases and keys. An election checks them before it starts.
type Bounded interface {
	// MinLease returns the shortest lease that makes sense on this store.
	MinLease() time.Duration
	// CheckKey returns an error that names the fault if the store cannot hold a cell under this
	// key.
	CheckKey(key string) error
}

// LeaseLimiter is a Store in which a lease that is longer than MaxLease would do harm, such as one
// where records expire.
type LeaseLimiter interface {
	// MaxLease returns the longest lease that may be held, as far as it is known by now.
	MaxLease() time.Duration
}

// Inspector is a Store that can report its settings that are unsafe for elections.
type Inspector interface {
	// Inspect checks the store's settings, for elections with leases up to the one given. Where
	// settings are not enough it may try the store out on cells of its own, which it removes; it
	// never touches an election's. No finding means that nothing unsafe is known. Errors are as for
	// Read.
	Inspect(ctx context.Context, lease time.Duration) ([]Finding, error)
}

// RightsChecker is a Store that can check whether it may write before it has to. An election asks
// when it campaigns and another candidate leads. Otherwise a standby that could never take over
// would look healthy.
type RightsChecker interface {
	// CheckRights returns an error that wraps ErrDenied if the right to write under this key is
	// missing, nil if it is not missing or if this store cannot tell, and any other error if there
	// was no answer. It makes one request, which changes nothing under any key, whatever the server
	// makes of it. The elections of a Group ask for one key, and take the
	// answer for all of theirs.
	CheckRights(ctx context.Context, key string) error
}

// Lister is a Store that can list its keys, for programs that show all elections.
type Lister interface {
	// Keys returns the keys of all cells that hold a value, each once and sorted. What was written
	// or removed just before may not show yet: a replica may answer. The values may be no election
	// records. Names that are no keys, as CheckKey says, are left out. It changes nothing. It
	// returns an error that wraps ErrDenied if the store says that the right to list is missing,
	// errors.ErrUnsupported if a store below this one cannot list, and any other error otherwise.
	Keys(ctx context.Context) ([]string, error)
}

// Identifier is a Store that names the incarnations of the elections made on it, because it can
// prove later that a record is theirs: a name may be a public key.
type Identifier interface {
	// Incarnation returns a new name, 1 to 64 bytes of text, that nothing else ever gets. It is
	// called once for each election made.
	Incarnation() string
}

// Nominator decides, from outside of an election, which of its candidates has precedence, such as
// the one to which a consumer group assigned a partition. It is no lease: two may be nominated at
// once, or none, and the election keeps them apart. But a Nominator that no longer knows reports
// false within a bounded time, because a leader that is the nominee is not asked to leave. Set it
// in the Config of an election. A Nominator serves one candidate.
type Nominator interface {
	// Nominate calls see with true if this candidate is the nominee, else false: soon with the
	// known state and then at each change, one call at a time, until stop is called. See returns at
	// once. Stop does not wait for a call of see that has begun. The election calls Nominate and
	// stop in turn, never two of them at once.
	Nominate(see func(nominated bool)) (stop func())
}

// VacancyListener is a Nominator that may learn late which candidate is named, and sooner if it
// knows that the election waits for the nominee.
type VacancyListener interface {
	Nominator
	// Vacant reports whether nobody leads, at each change; the initial state is that there is a
	// leader. It returns at once. The election never calls it together with Nominate or stop.
	Vacant(vacant bool)
}

// Gate is a Nominator for work that can also have a leader unknown to the election, such as a
// member of another kind in the same consumer group. It decides when this candidate may lead at
// all.
type Gate interface {
	Nominator
	// MayLead reports whether this candidate may lead now. While it may not it claims nothing, and
	// if it leads it is asked to finish. The election asks before each of its steps, under its
	// lock: compute the answer at once, from the clock, and without a call of the election. After a
	// new answer, call the see of Nominate.
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

// String returns the name of the severity in lower case.
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

// Finding is one result of Inspect.
type Finding struct {
	Severity Severity
	// Setting is the store's own name for the checked setting, such as "replicas".
	Setting string
	// Problem describes in one sentence the possible harm.
	Problem string
	// Remedy gives the remedy, as a command where there is one.
	Remedy string
}

// String returns one line: severity, setting, problem, remedy.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Severity, f.Setting, f.Problem, f.Remedy)
}
