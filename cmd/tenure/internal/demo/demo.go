package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/fault"
	"github.com/tenure-go/tenure/cmd/tenure/internal/stores"
	"github.com/tenure-go/tenure/driver"
)

// Run shows an election until ctx ends or its time is up, and leaves nothing behind. It returns an error for people if it
// could not begin, if no candidate may take part, or if it found an overlap.
func Run(ctx context.Context, o Options) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	if o.Place.IsZero() {
		server, err := serve()
		if err != nil {
			return err
		}
		defer server.close()
		o.Place, o.Create = server.place(), true
	}
	return o.stage(ctx)
}

// stage prepares everything that may go wrong before the first candidate is started.
func (o Options) stage(ctx context.Context) error {
	connection := make(chan deed, 16)
	store, err := stores.Open(ctx, o.Place, stores.Options{
		Client: "tenure demo", Create: o.Create, OnConnection: tellConnection(connection),
	})
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	findings, err := o.inspect(ctx, store)
	if err != nil {
		return err
	}
	d := newDirector(o, o.Place, o.printer())
	d.print.begin(time.Now(), o)
	for _, f := range findings {
		d.note(deed{do: doAdvise, text: f.String()})
	}
	sights, unwatch, err := look(ctx, store, o.Election)
	if err != nil {
		d.note(deed{do: doUnseen, text: err.Error()})
	} else {
		defer unwatch()
	}
	d.sights = sights
	return o.play(ctx, d, connection)
}

// inspect reads the record, to see whether it may, and looks for what is unwise about the bucket.
func (o Options) inspect(ctx context.Context, store *stores.Store) ([]driver.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := store.Read(ctx, o.Election); err != nil {
		return nil, stores.Explain(o.Place, err)
	}
	all, err := store.Inspect(ctx, o.Lease)
	if err != nil {
		return nil, stores.Explain(o.Place, err)
	}
	var serious []driver.Finding
	for _, f := range all {
		if f.Severity >= driver.Warning {
			serious = append(serious, f)
		}
	}
	return serious, nil
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
	s := d.summary()
	d.print.end(time.Now(), s)
	if s.overlaps > 0 {
		return fault.New("this should never be: please report it with the output of --json", "%s found", count(s.overlaps, "overlap"))
	}
	return nil
}

// tellConnection never blocks: it is called by the client library.
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

// follow ends with the demo.
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

func (o Options) printer() printer {
	if o.JSON {
		return &jsonLines{out: o.Out, election: o.Election}
	}
	return newHuman(o)
}
