// Package driver is the contract between Tenure and the store that holds its elections. Use it to
// write an adapter for a store; programs that use elections never call it.
//
// Tenure needs one linearizable compare-and-swap register per election: a cell, which a key names.
// An adapter must implement [Store]. All other interfaces are optional; an election finds them by
// [AbilitiesOf]. A store around another one passes them on as a [Wrapper]. The conformance kit in
// package drivertest tests this contract. docs/write-a-store.md has the steps to write an adapter.
//
// # Rules for adapters
//
//  1. One attempt per call. No retries, no loops, no timers, no logs, no work that outlives the
//     call, except a call that rule 2 abandons. Retries of the client library are off for writes:
//     if the first attempt of a compare-and-swap was applied, a retry returns a conflict.
//  2. The call ends soon after its context does, whatever the network does. If the client library
//     cannot guarantee this, run its call in a goroutine, and abandon that goroutine when the
//     context ends. Bound the number of abandoned calls: package abandon does both.
//  3. [Store.CompareAndSwap] is atomic among all writers, in all processes. A check followed by a
//     write is not.
//  4. Within one history of a store (from its creation to its deletion), two writes of different
//     bytes never get the same version. A hash of the content is enough as a version, since
//     elections never write the same bytes twice. When a key is purged, the version of its absence
//     may recur. If the network then delivers the first write under the key once more, a hash
//     recurs as well. A store that is deleted and recreated begins another history. If versions of
//     an earlier history can recur in it, each history must have its own [Entry.Era]. Versions also
//     recur where a store is restored from a backup or loses its last writes, and no adapter can
//     see that. Elections allow for all of this: they read before they replace a state that they
//     saw long ago.
//  5. An adapter returns [ErrConflict] or [ErrDenied] only if the store certainly refused this
//     request. Any other error leaves the outcome open: the write may have been applied, may be
//     applied later, or never.
//  6. Values up to [MaxValue] bytes are kept byte for byte. An adapter hands out copies, also to
//     watchers, and keeps none of the bytes that it was given.
//  7. A call that begins after its context has ended applies nothing. Its error is not
//     [ErrConflict].
//  8. All methods may be called from many goroutines at once.
//
// Reads need not be fresh: a stale one costs time, never safety.
package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxValue is the size in bytes of the largest value that an election writes. A store must keep
// such a value.
const MaxValue = 4096

// MaxLease is the longest lease that the protocol allows: one hour.
const MaxLease = time.Hour

var (
	// ErrConflict reports that the store refused this request: the cell no longer had the expected
	// version, or is about to lose it to a write that is on its way to the replicas. An earlier
	// delivery of the same request may have been applied, since networks and proxies repeat
	// requests. The caller reads to find out.
	ErrConflict = errors.New("version conflict")

	// ErrDenied reports that the store refused the request because the client lacks the right to
	// make it. Waiting does not help: an operator must fix it.
	ErrDenied = errors.New("permission denied")

	// ErrPoolBusy reports that a call waited for a free connection of the client until its context
	// ended, so nothing was sent. The store may be well: other code of the program holds all
	// connections.
	ErrPoolBusy = errors.New("no free connection in the pool")

	// ErrConnecting reports that no connection to the store was open when the context of a call
	// ended, so nothing was sent.
	ErrConnecting = errors.New("no connection to the store")

	// ErrNoAnswer reports that the store did not answer before the context of a call ended. An
	// election adds it where a store returns context.DeadlineExceeded without one of these errors.
	ErrNoAnswer = errors.New("no answer from the store")

	// ErrUnwritten is wrapped by the Notice of an absence that could be Pristine (see Entry).
	ErrUnwritten = errors.New("nothing was ever written")

	// ErrUnfit reports that the store was seen to break a promise that elections rely on, so the
	// adapter did not send the request. Waiting does not help: an operator must change the store.
	ErrUnfit = errors.New("the store is unfit for elections")
)

// Version names one state of a cell. It is opaque: compare versions for equality and hand them
// back, nothing else. The empty Version is that of an absence that the store cannot name. A write
// from it succeeds only while the cell is absent.
type Version string

// Entry is the state of a cell. A store has one history from its creation to its deletion. Floor
// and Ceiling are bounds on the terms in one history: with Floor, tokens grow even after a record
// was removed; with both, an impossible term is noticed. Era and Unproven tell one history from
// another. The glossary in docs/protocol.md defines these words.
type Entry struct {
	// Value is the value of the cell; nil or empty if it is absent.
	Value []byte
	// Version is the value that CompareAndSwap expects as prev in order to replace this state. Some
	// absences have a version too: a delete marker, or the state before the first write. All other
	// absences have the empty Version.
	Version Version
	// Floor keeps terms growing: a claim takes a term above it. It is an upper bound on every term
	// under this key up to this state, within one history of the store. Zero: the store vouches for
	// nothing.
	//
	// Floor can be any counter of the store that every write raises by 1 or more, read at this
	// state or later: a stream sequence, a log offset, or the store's clock in milliseconds if it
	// ticks between any two writes of a key. It survives the removal of the key. In one history no
	// earlier term is above Floor, so a claim takes the term Floor + 1, and its own write raises
	// the counter by at least 1. So the bound holds for that claim, too.
	//
	// An election ignores a Floor that is 2^40 or more above both Ceiling (2^52 if that is zero)
	// and the term of the record. It raises an alarm and takes the state as Unproven. If there is
	// no record either, no candidate claims.
	Floor uint64
	// Ceiling only decides which terms are credible: those below 2^53 and below 2^40 plus the
	// larger of Floor and Ceiling. A record with any other term is malformed, and no claim takes
	// such a term. Set Ceiling if Floor can be far too low, as with a clock that is not set, or if
	// other members know of higher terms than this adapter sees. Zero: Floor decides. If both are
	// zero, 2^52 takes their place.
	Ceiling uint64
	// Pristine reports that the cell is absent, and that a CompareAndSwap from this Version
	// succeeds only if nothing was ever written under the key (or in the whole store). The store
	// itself must check that at the moment of the write; if it cannot, Pristine is false. A
	// candidate that has never seen anything else there claims such a cell without waiting.
	Pristine bool
	// Era names the history of the store that this state belongs to. A recreated store has another
	// era than the deleted one if versions can recur in it. In a new era an election trusts nothing
	// that it knew, not even an equal version, and waits out the lease of the record that it finds.
	// An adapter whose versions recur in a recreated store must set the era in each entry, pushed
	// or read. Zero: the store cannot tell.
	Era uint64
	// Unproven reports that this may not be the last state that a member wrote. For example, a
	// primary wrote it in another era than the present one, and the promoted standby may lack the
	// last writes of that primary. Or a program that ignores the rules of the store wrote it. Every
	// member, also one that has just started, waits for the lease of this record to end, as for the
	// first record in a new era. No request to hand over replaces such a record. A store that sets
	// Unproven because eras differ also refuses a CompareAndSwap from a version that was read in
	// another era.
	Unproven bool
	// Unverified marks a push that anyone can have sent, not only the writers of the store, such as
	// a notification without access control. It can cause a read or postpone one. If a read then
	// shows the same write, a follower counts the lease from the push. Nothing else follows from
	// it: no claim, no term, no release. In a Read it has no meaning.
	Unverified bool
	// Lost, in a push, says why changes of this cell are pushed no longer; nil: they are pushed.
	// Nothing else in such an entry has a meaning. The next push without Lost shows that changes
	// are pushed again; the election then reads. In a Read it has no meaning.
	Lost error
	// Notice tells operators why a value is missing, as far as the store knows: deleted, purged or
	// expired. The event that reports the loss carries it. If there is a value, Notice reports
	// something in the store that an operator must correct, and raises an alarm.
	//
	// A Notice that wraps ErrUnwritten says how the program can make the store return this absence
	// as Pristine, by vouching for earlier stores of this name. The event of a candidate that waits
	// because of the absence carries it.
	Notice error
}

// Absent reports whether the cell holds no value: never written, purged, expired or deleted.
func (e Entry) Absent() bool { return len(e.Value) == 0 }

// Store is a set of compare-and-swap registers.
type Store interface {
	// Read returns the state of the cell. An absent cell is an Entry without a Value, not an error.
	// It returns an error that wraps ErrDenied if the client lacks the right to read, and any other
	// error if the state is not known.
	Read(ctx context.Context, key string) (Entry, error)

	// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
	// returns the version of the new state. It returns an error that wraps ErrConflict if the store
	// refused the write because of the version (see ErrConflict), ErrDenied if the client lacks the
	// right to write, ErrUnfit if the store cannot hold elections, and any other error if the
	// outcome is not known.
	CompareAndSwap(ctx context.Context, key string, prev Version, value []byte) (Version, error)
}

// Watcher is a Store that pushes changes. Pushes are hints: they may be late, duplicated, out of
// order or missing, and the election reads when it hears nothing. If the connection for pushes is
// lost and not replaced within about 2 s, the store pushes an Entry with Lost. The election then
// polls until the next push without it. In a store for many elections, let all watches share one
// subscription and a fixed number of goroutines, so that ten thousand of them are cheap. Package
// peer is an exception: one stream and one goroutine for each key.
type Watcher interface {
	// Watch calls see for changes of the cell until stop is called; Watch may call see for the
	// present state first. The context bounds only the set-up. If its deadline comes before changes
	// are pushed, Watch returns an error, or the watch begins with an Entry with Lost. The function
	// see returns at once, takes no lock of the store and may be called concurrently. After stop
	// has returned, see may still be called for a change that was already under way; later changes
	// are not pushed. Stop may be called more than once, and from see. Errors are as for Read.
	Watch(ctx context.Context, key string, see func(Entry)) (stop func(), err error)
}

// Peers is a Watcher over which members push to each other, so that a push may reach some and not
// others. Members of its elections do not assume that the others have received a push.
type Peers interface {
	Watcher
	// Incarnation returns a new name, of at most 64 bytes of text, that no other election ever
	// gets. A name may be a public key: then the store can prove later that this election wrote a
	// record. If the result is empty, the election makes a name itself. Incarnation is called once
	// for each Election value.
	//
	// The function left returns for how much longer the lease of a term of this election is valid,
	// by the election's own clock and less the margin of its settings, even if no outstanding write
	// is applied. It returns 0 for any other term. After it no member may say that this election
	// leads. It takes a lock of the election and returns at once; call it without a lock of the
	// store. It does not keep the Election in memory, and returns 0 when that is gone.
	Incarnation(left func(term uint64) time.Duration) string
}

// Bounded is a Store with limits on leases and keys. An election checks them when it is made, and
// the limit on leases when it is reconfigured.
type Bounded interface {
	// MinLease returns the shortest lease that an election accepts on this store.
	MinLease() time.Duration
	// MaxLease returns the longest one, as far as the store knows at present: the constant MaxLease
	// unless a longer lease than the result would do harm, for example because records expire.
	MaxLease() time.Duration
	// CheckKey returns an error that names the fault if the store cannot hold a cell under this
	// key. If the store cannot hold two keys at the same time, the one that was not written first
	// reads as a foreign value with a Notice, and no write replaces that.
	CheckKey(key string) error
}

// CheckText is Bounded.CheckKey for stores whose keys are text. It returns an error unless the key
// is UTF-8 text of 1 to most bytes without control characters.
func CheckText(key string, most int) error {
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) > most:
		return fmt.Errorf("key %.40q...: %d bytes, of at most %d", key, len(key), most)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q: not UTF-8", key)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("key %q: control characters are not allowed", key)
	}
	return nil
}

// Inspector is a Store that shows operators its elections, its settings that are unsafe for them,
// and whether this client may write.
type Inspector interface {
	// Keys returns the keys of all cells that hold a value, each once and sorted. A replica may
	// answer, so the last writes and removals may not show yet. The values may be foreign to
	// elections. Keys leaves out names that CheckKey refuses. It changes nothing. It returns an
	// error that wraps errors.ErrUnsupported if this store cannot list its keys, ErrDenied if the
	// store says that the right to list is missing, and any other error if there was no answer.
	Keys(ctx context.Context) ([]string, error)
	// Inspect checks the store's settings, for elections with leases up to the one given. Where
	// settings do not show enough, it may write to cells of its own, which it removes. It never
	// touches the cell of an election. No finding means that it knows of nothing unsafe. Errors are
	// as for Read.
	Inspect(ctx context.Context, lease time.Duration) ([]Finding, error)
	// CheckRights checks the right to write without a write. It returns an error that wraps
	// ErrDenied if the right to write under this key is missing, ErrUnfit if a write would return
	// that, errors.ErrUnsupported if this store has no such check, nil if nothing is known to be
	// missing, and any other error if there was no answer. Its requests change nothing under the
	// key of any election, even if the server applies them. The elections of a Group ask for one
	// key and take the answer for all.
	//
	// An election asks as soon as it campaigns and another candidate leads. It asks again once per
	// lease while the right is missing or unknown. Without this check a standby that can never take
	// over would look healthy.
	CheckRights(ctx context.Context, key string) error
}

// Presence is a Store over which candidates answer when an observer asks who takes part. Nothing
// is sent until then, so candidates cost nothing in steady state. The answers are for people
// alone: anyone with access to the store may answer falsely, and a candidate may be too slow or
// cut off. No decision of an election depends on them.
type Presence interface {
	// Announce makes this process answer questions about the key until stop is called. An answer is
	// the result of who: one line of text of 1 to MaxPresence bytes, or nothing to give no answer.
	// The function who returns at once and takes no lock of the store. All announcements of a Store
	// share one subscription and a fixed number of goroutines. The context bounds only the set-up.
	// Announce returns an error that wraps ErrDenied if the right is missing,
	// errors.ErrUnsupported if the store has no way to do it after all, and the error of CheckKey.
	// While there is no connection it returns nil, and candidates answer when there is one again.
	// After stop has returned, who may still be called for a question that was under way. Stop may
	// be called more than once.
	Announce(ctx context.Context, key string, who func() []byte) (stop func(), err error)
	// Candidates asks, waits for a short time that is the same for any number of candidates, and
	// returns what they answered, in no order. The empty key asks about all keys; a process then
	// leaves out what does not fit into one answer. No answer is no error, and no proof that there
	// is no candidate. Errors are as for Announce; without a connection it returns an error.
	Candidates(ctx context.Context, key string) ([][]byte, error)
}

// MaxPresence is the size in bytes of the longest answer of one candidate, see Presence.
const MaxPresence = 1024

// Severity ranks a finding.
type Severity int

const (
	// Advice means that with this setting elections are slower or cost more than necessary.
	Advice Severity = iota + 1
	// Warning means that with this setting a second fault does harm. A leader may be lost, a term
	// may be lower than an earlier one, or an election may take longer.
	Warning
	// Unsafe means that with this setting there may be two leaders at once, or never a leader.
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
	// Problem describes the possible harm in one sentence.
	Problem string
	// Remedy gives the remedy, as a command where there is one.
	Remedy string
}

// String returns one line: severity, setting, problem, remedy.
func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Severity, f.Setting, f.Problem, f.Remedy)
}

// Term is the part of *tenure.Term that a package needs to write to a resource on behalf of a
// leader. Packages that belong to a store, such as its package fenced, take a Term, because a
// driver must not import package tenure.
type Term interface {
	// Token returns the fencing token. Every later term of the same election has a higher one.
	Token() uint64
	// Election returns the name of the term's election.
	Election() string
	// Err returns nil if this process may act for the election at this moment. Otherwise it wraps
	// ErrLost and the cause.
	Err() error
	// Remaining returns how much longer this process may act if no renewal succeeds from now on. It
	// returns 0 if Err is not nil.
	Remaining() time.Duration
	// Do calls fn if at least need is left of the lease, with a context that ends with ctx or with
	// the term. It returns fn's error. If the term is over, or less is left, it returns another
	// error without calling fn.
	Do(ctx context.Context, need time.Duration, fn func(context.Context) error) error
}

// Errors about a term. Package tenure has them under the same names.
var (
	// ErrLost is wrapped by every error about a term that has ended.
	ErrLost = errors.New("tenure: leadership lost")
	// ErrDeposed is the cause if another candidate holds the election.
	ErrDeposed = errors.New("another candidate holds the election")
)

// StoreError reports that a record, or the store that holds it, is not as the members of the
// election left it. Package tenure has it under the same name. Two StoreErrors of one Kind are the
// same for errors.Is.
type StoreError struct{ Kind Damage }

// Damage is the kind of a StoreError.
type Damage string

// The kinds.
const (
	// Deleted: the record was deleted, purged, or expired in the store.
	Deleted Damage = "deleted"
	// Recreated: the store was recreated, or its server restarted or replaced, so its former
	// contents prove nothing.
	Recreated Damage = "recreated"
	// Regressed: the store holds an older state than before, as after a restored backup.
	Regressed Damage = "regressed"
	// Foreign: the key holds bytes that are not an election record. No election overwrites them,
	// and nobody leads.
	Foreign Damage = "foreign"
	// Malformed: the key holds a record that breaks a limit of the format, or whose term is not
	// credible.
	Malformed Damage = "malformed"
)

// Error describes the damage.
func (e *StoreError) Error() string {
	switch e.Kind {
	case Deleted:
		return "record was deleted or expired in the store"
	case Recreated:
		return "store was recreated, or its server was restarted or replaced"
	case Regressed:
		return "store holds an older state than before"
	case Foreign:
		return "key holds bytes that are not an election record"
	case Malformed:
		return "key holds a malformed election record"
	}
	return string(e.Kind)
}

// Is reports whether the target is a StoreError of the same Kind.
func (e *StoreError) Is(target error) bool {
	t, ok := target.(*StoreError)
	return ok && t.Kind == e.Kind
}
