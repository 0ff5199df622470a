package demo

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
)

// Options are the settings of the demo.
type Options struct {
	// Place says where the election is kept; if it is zero the demo starts a server.
	Place stores.Place
	// EmbeddedS3 makes the server one of object storage instead of NATS.
	EmbeddedS3 bool
	// EmbeddedKafka starts brokers of Kafka, with this topic and these settings.
	EmbeddedKafka *stores.Kafka
	// Await says how long to wait for a server that cannot be reached.
	Await stores.Patience
	// Create makes the bucket or topic if it is missing.
	Create bool
	// Inspect tests the store, even with many requests, and ends the demo if it is unsafe.
	Inspect  bool
	Election string
	// Peers are the first candidate's settings of peers, for a store that does not push; nil:
	// followers poll.
	Peers *peers.Settings

	Candidates int
	Lease      time.Duration
	Renew      time.Duration // 0: a third of the lease
	Splay      time.Duration
	// CrashEvery is the time from one disturbance of the leader to the next; 0: never.
	CrashEvery time.Duration
	// For is the time after which the demo ends; 0: it ends when it is interrupted.
	For time.Duration
	// Flags name the sources of the other settings, for errors.
	Flags cli.Flags

	// Command returns the command line of a candidate, which must call RunCandidate.
	Command func(id string) *exec.Cmd
	Out     io.Writer
	JSON    bool
	Colour  bool
	// Live shows the demo as a live view on Out, which is a terminal, with keys from In. Plain
	// forbids that.
	Live, Plain bool
	In          io.Reader
	// Verbose also prints the view of each follower.
	Verbose bool
}

// Limits of the options that the library does not know.
const (
	maxCandidates = 100
	minCrashEvery = 100 * time.Millisecond
)

// withDefaults fills in the library's defaults, so that they can be printed.
func (o Options) withDefaults() Options {
	if o.Renew == 0 {
		o.Renew = o.Lease / 3
	}
	return o
}

// validate returns all wrong settings in one error, before anything is started.
func (o Options) validate() error {
	var problems []error
	if o.Candidates < 1 || o.Candidates > maxCandidates {
		problems = append(problems, fmt.Errorf("--candidates is %d; it must be from 1 to %d", o.Candidates, maxCandidates))
	}
	if o.CrashEvery < minCrashEvery && o.CrashEvery != 0 {
		problems = append(problems,
			fmt.Errorf("--crash-every is %v; it must be 0 for never, or at least %v", o.CrashEvery, minCrashEvery))
	}
	problems = append(problems, o.Peers.CheckMembers(o.Candidates), o.validateElection())
	if err := errors.Join(problems...); err != nil {
		return fault.OfValue(fault.New("tenure-demo --help says what each setting means", "%w", err))
	}
	return nil
}

func (o Options) validateElection() error {
	store, err := o.kindOfPlace().Limits()
	if err != nil {
		return err
	}
	return o.Flags.Check(store, o.Election, o.spec(1, stores.Place{}).config())
}

// kindOfPlace returns the place, or one of the same kind as the server that will be started.
func (o Options) kindOfPlace() stores.Place {
	switch {
	case !o.Place.IsZero():
		return o.Place
	case o.EmbeddedS3:
		return s3Place("")
	case o.EmbeddedKafka != nil:
		return kafkaPlace(o.EmbeddedKafka, nil)
	}
	return natsPlace("")
}

// Polled reports whether the store does not push changes.
func (o Options) Polled() bool { return !o.kindOfPlace().Pushes() }

// slack returns how much later than necessary a follower may read a store that is polled.
func (o Options) slack() time.Duration {
	if !o.Polled() || o.Peers != nil {
		return 0
	}
	c := o.spec(1, stores.Place{}).config()
	return c.WorstFailover(nil) - c.Lease
}

// spec returns the spec of the i-th candidate, from 1.
func (o Options) spec(i int, place stores.Place) spec {
	return spec{
		Place: place, Election: o.Election, ID: fmt.Sprintf("c%d", i),
		Lease: o.Lease, Renew: o.Renew, Splay: o.Splay, Peer: o.Peers.ForMember(i - 1),
	}
}

// StoreName returns the name of the kind of store for messages.
func (o Options) StoreName() string { return o.kindOfPlace().Kind() }
