// Package demo shows an election at work, and checks it at the same time.
//
// The demo starts candidates, each a process of its own, and disturbs the leader: it kills it,
// freezes it, and asks it to end, in turn. It sorts the reports of the candidates and its own
// actions by the clock that all processes of the machine share, prints them line by line, and keeps
// a ledger of failovers. While it leads, a candidate acts many times a second and reports when;
// internal/witness looks for an act of an older term that came after the first act of a newer one.
//
//	demo.go       the entry point and its settings
//	server.go     servers that the demo starts if no store is named
//	candidate.go  one candidate, in its own process, and the messages to it and from it
//	director.go   the loop, the candidates' processes, the faults that are injected, and the acts
//	              of leaders, for the witness
//	entry.go      everything that happened, in order
//	ledger.go     times of failovers, and the least possible times
//	lines.go      output line by line, as text and as JSON
//	live.go       output on a terminal
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/peers"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/cmd/internal/stores/kafkatopic"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/timing"
)

// Run shows an election until ctx ends or its time is up, and leaves nothing behind. It returns an
// error with a hint if it could not begin, if no candidate may take part, or if it found an
// overlap.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.Renew == 0 {
		o.Renew = o.Lease / 3 // the library's default, so that it can be printed
	}
	if o.Place.IsZero() {
		place, closes, err := o.serve()
		if err != nil {
			return err
		}
		defer closes()
		o.Place, o.Create = place, !o.EmbeddedS3
	}
	return o.prepare(ctx)
}

// prepare takes all steps that may fail before the first candidate is started, and then plays.
func (o Options) prepare(ctx context.Context) error {
	connection := make(chan deed, 16)
	store, err := o.connect(ctx, connection)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	findings, err := o.inspect(ctx, store)
	if err != nil {
		return err
	}
	if err := o.tryNomination(ctx, store); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := newDirector(o, o.Place, o.printer(cancel))
	d.print.begin(time.Now(), o)
	defer func() { _ = d.print.leave() }() // also when the demo panics, so that this can be read
	for _, f := range findings {
		d.note(deed{do: doAdvise, text: f.String()})
	}
	unwatch := d.watch(ctx, store)
	defer unwatch()
	return o.play(ctx, d, connection)
}

// tryNomination takes part in the nomination for a moment, if there is one. So an error that would
// stop the candidates is reported at once, and the topic that they need is created.
func (o Options) tryNomination(ctx context.Context, store *stores.Store) error {
	ctx, cancel := context.WithTimeout(ctx, o.patience())
	defer cancel()
	n, err := store.Nominate(ctx, o.Election)
	if n != nil {
		_ = n.Close()
	}
	return err
}

// watch watches the renewals that the store pushes. If it does not push, the candidates report
// their writes.
func (d *director) watch(ctx context.Context, store *stores.Store) (stop func()) {
	w := driver.AbilitiesOf(store.Driver).Watcher
	if w == nil {
		return func() {}
	}
	sights, stop, err := look(ctx, w, d.options.Election)
	if err != nil {
		d.note(deed{do: doUnseen, text: err.Error()})
		return func() {}
	}
	d.sights = sights
	return stop
}

// connect opens the store and reads the record, to check that this is permitted.
func (o Options) connect(ctx context.Context, connection chan<- deed) (*stores.Store, error) {
	return stores.Connect(ctx, o.Place, o.Election, stores.Options{
		Client: "tenure-demo", Create: o.Create, Lease: o.Lease, OnConnection: tellConnection(connection),
	}, o.Await)
}

// inspect looks for unwise settings of the store. If that takes many requests, it does so only with
// --inspect.
func (o Options) inspect(ctx context.Context, store *stores.Store) ([]driver.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, o.patience())
	defer cancel()
	if o.Polled() && !o.Inspect {
		return nil, nil
	}
	all, err := store.Inspect(ctx, o.Lease)
	// a candidate without the right to read the settings may take part
	if errors.Is(err, driver.ErrDenied) && !o.Inspect {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	serious := slices.DeleteFunc(all, func(f driver.Finding) bool { return f.Severity < driver.Warning })
	for _, f := range serious {
		if o.Inspect && f.Severity == driver.Unsafe {
			return nil, o.Place.Unsafe(f)
		}
	}
	return serious, nil
}

// patience returns how long the inspection of a store may take.
func (o Options) patience() time.Duration {
	if o.Inspect {
		return 2 * time.Minute
	}
	return 5 * time.Second
}

func (o Options) play(ctx context.Context, d *director, connection <-chan deed) error {
	if o.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.For)
		defer cancel()
	}
	d.running.Go(func() { d.follow(connection) })
	if err := d.run(ctx); err != nil {
		return err
	}
	broken := d.print.leave()
	s := d.summary()
	d.print.end(time.Now(), s)
	if s.overlaps > 0 {
		return fault.New(o.blameOverlaps(), "%s found", count(s.overlaps, "overlap"))
	}
	if broken != nil {
		return fault.New("--plain shows the demo line by line", "%w", broken)
	}
	return nil
}

// blameOverlaps returns the hint for overlaps, which should never occur.
func (o Options) blameOverlaps() string {
	if o.Polled() && !o.Inspect {
		return "check with --inspect whether the server obeys the conditions of writes; if it does, please report this with " +
			"the output of --json"
	}
	return "this should never occur: please report it with the output of --json"
}

// tellConnection returns a function that never blocks, since the client library calls it.
func tellConnection(news chan<- deed) func(up bool, err error) {
	return func(up bool, err error) {
		text := "the connection is back"
		if !up {
			text = "the connection is lost"
		}
		if err != nil {
			text = fmt.Sprintf("%s: %v", text, err)
		}
		select {
		case news <- deed{do: doStore, text: text}:
		default:
		}
	}
}

// follow notes the news of the connection until the demo ends.
func (d *director) follow(connection <-chan deed) {
	for {
		select {
		case what := <-connection:
			d.post(func() { d.note(what) })
		case <-d.done:
			return
		}
	}
}

// printer returns the printer of the demo. It calls quit if the user ends the live view.
func (o Options) printer(quit func()) printer {
	switch {
	case o.JSON:
		return &jsonLines{out: o.Out, election: o.Election}
	case o.Live:
		return newLive(o, quit)
	}
	return newHuman(o)
}

// Options are the settings of the demo.
type Options struct {
	// Place says where the election is kept; if it is zero the demo starts a server.
	Place stores.Place
	// EmbeddedS3 makes the server one of object storage instead of NATS.
	EmbeddedS3 bool
	// EmbeddedKafka starts brokers of Kafka, with this topic and these settings.
	EmbeddedKafka *kafkatopic.Place
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
	return timing.WorstFailover(c, nil) - c.Lease
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
