package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/cmd/internal/stores"
	"github.com/tenure-go/tenure/driver"
)

// Run shows an election until ctx ends or its time is up, and leaves nothing behind. It returns an
// error with a hint if it could not begin, if no candidate may take part, or if it found an
// overlap.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	o = o.withDefaults()
	if o.Place.IsZero() {
		server, err := o.serve()
		if err != nil {
			return err
		}
		defer server.close()
		o.Place, o.Create = server.place(), !o.EmbeddedS3
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
