// Package watch reports the changes of an election, without taking part in it.
package watch

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/view"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
	"github.com/tenure-go/tenure/internal/story"
)

// Options say what to watch, and how to report it.
type Options struct {
	Place    fmt.Stringer // without credentials
	Election string
	// Config is that of an observer.
	Config tenure.Config
	// Hints are commands to type in another terminal.
	Hints []string

	Out  io.Writer
	JSON bool
	// Screen is the terminal of a live view; nil: lines are written to Out. Keys come from In.
	Screen, In *os.File
	Colour     bool
}

// Watcher watches one election.
type Watcher struct {
	options  Options
	election *tenure.Election
	story    story.Story
	news     chan item
}

// queued is the number of items that may wait for a slow terminal.
const queued = 1024

// New returns a Watcher that has not begun.
func New(o Options) *Watcher {
	return &Watcher{options: o, news: make(chan item, queued)}
}

// Connection reports the connection to the store, as stores.Options.OnConnection is called. It does
// not block.
func (w *Watcher) Connection(up bool, err error) {
	w.post(item{Item: story.Item{Fact: story.Fact{At: time.Now(), What: connection, Text: connectionText(up, err)}}, up: up, cause: err})
}

func connectionText(up bool, err error) string {
	text := "the connection is lost"
	if up {
		text = "the connection is back"
	}
	if err != nil {
		text += ": " + err.Error()
	}
	return text
}

// connection is a fact about the connection; the live view shows it unchanged.
const connection story.What = "store"

// item is one thing to report.
type item struct {
	story.Item
	// up and cause are about the connection.
	up    bool
	cause error
}

// fact returns the item as the live view shows it. Late is as for story.Tardy.
func (i *item) fact(late time.Duration) view.Fact {
	return view.Fact{
		At: i.At, What: view.What(i.What), Who: i.Who, Term: i.Term, Text: i.Text, Address: i.Address,
		Lease: i.Lease, Written: i.Written, AtLeast: i.AtLeast, LeaseEnded: i.LeaseEnded, Expected: i.Expected,
		Took: i.Took, Least: i.Least, TookAtLeast: i.TookAtLeast, Downtime: i.Downtime, Late: late,
	}
}

// tells posts the items of the story.
func (w *Watcher) tells(all []story.Item) {
	for _, i := range all {
		w.post(item{Item: i})
	}
}

// post adds items to the news. It drops those for which there is no room.
func (w *Watcher) post(all ...item) {
	for _, i := range all {
		select {
		case w.news <- i:
		default:
		}
	}
}

// Run reports until ctx ends or the user ends the live view; then it returns nil. It returns an
// error that wraps driver.ErrDenied if the record may not be read.
func (w *Watcher) Run(ctx context.Context, store driver.Store) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cfg := w.options.Config
	cfg.OnEvent = func(e tenure.Event) { w.tells(w.story.Hear(e)) }
	see := func(_ string, e driver.Entry, pushed bool) { w.tells(w.story.See(e, pushed, time.Now())) }
	e, err := tenure.New(records.Tap(store, see), w.options.Election, cfg)
	if err != nil {
		return err
	}
	w.election, w.options.Config.ID = e, e.ID()
	var told chan error // nil until the store was read
	for s, err := range e.Watch(ctx) {
		if err != nil {
			return err
		}
		if told == nil {
			told = make(chan error, 1)
			w.tells(w.story.Begin(s, w.options.Election, e.ID()))
			go func() {
				defer cancel()
				told <- w.tell(ctx, cancel)
			}()
		}
	}
	if told == nil {
		return nil
	}
	return <-told
}

func (w *Watcher) tell(ctx context.Context, cancel func()) error {
	o := w.options
	switch {
	case o.JSON:
		w.each(ctx, (&jsonLines{out: o.Out, options: o}).tell)
	case o.Screen != nil:
		return w.show(ctx, cancel)
	default:
		w.each(ctx, newTextLines(o).tell)
	}
	return nil
}

// each passes on the items until ctx ends, and then those that still wait.
func (w *Watcher) each(ctx context.Context, tell func(item)) {
	for ctx.Err() == nil {
		select {
		case i := <-w.news:
			tell(i)
		case <-ctx.Done():
		}
	}
	for len(w.news) > 0 {
		tell(<-w.news)
	}
}

// show runs the live view. It drops items for which there is no room. At the end it prints one line
// with the leader.
func (w *Watcher) show(ctx context.Context, cancel func()) error {
	o := w.options
	facts := make(chan view.Fact, queued)
	done := make(chan struct{})
	var last item
	go func() {
		defer close(done)
		w.each(ctx, func(i item) {
			if i.What == story.Elected || i.What == story.Named || i.What == story.Nobody {
				last = i
			}
			select {
			case facts <- i.fact(story.Late(w.election.Status().Pushed, i.Lease, o.Config.Tuning.PollStable)):
			default:
			}
		})
	}()
	err := view.Run(ctx, o.In, o.Screen, view.Screen{
		Title: "tenure watch", Place: o.Place.String(), Election: o.Election, Lease: w.story.Lease(), Hints: o.Hints, Colour: o.Colour,
	}, facts)
	cancel()
	<-done
	(&textLines{out: o.Out}).tell(last)
	return err
}
