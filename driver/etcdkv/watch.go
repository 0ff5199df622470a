package etcdkv

import (
	"bytes"
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// feed brings the events from the first watch to the last: each stream resumes behind the last
// event.
type feed struct {
	hub   *watches.Hub
	store *Store
	at    point // the history of the stream, with the raft term of its last message
	next  int64 // the revision of the first event that is still to come; 0: not known
}

// follow is a watches.Follow.
func (f *feed) follow(ctx context.Context, opened func(missed bool)) error {
	w, missed, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	opened(missed)
	for {
		events, term, err := w.receive()
		switch {
		case err != nil:
			f.forget(err)
			return f.store.explain(ctx, err)
		case f.store.past.now().changes != f.at.changes:
			return errMoved
		}
		f.at.term = term
		for _, e := range events {
			f.pass(e)
		}
	}
}

// open opens a stream. A read first shows the present point: a member of the cluster whose history
// was restored keeps a stream silent that resumes at a revision of the former history.
func (f *feed) open(ctx context.Context) (w *stream, missed bool, err error) {
	now, err := f.store.look(ctx)
	if err != nil {
		return nil, false, err
	}
	moved := f.at.known() && now.era() != f.at.era()
	missed = moved || f.at.known() && f.next == 0
	if moved || f.next == 0 {
		f.next = now.revision + 1
	}
	f.at = now
	w, err = f.store.newStream(ctx, now, f.next)
	f.forget(err)
	return w, missed, err
}

// forget drops the place to resume at if it is not available any more.
func (f *feed) forget(err error) {
	if errors.Is(err, errCompacted) {
		f.next = 0
	}
}

func (f *feed) pass(event *mvccpb.Event) {
	kv := event.Kv
	e := driver.Entry{Floor: uint64(kv.ModRevision), Era: f.at.era()}
	if event.Type == mvccpb.Event_PUT {
		e.Value, e.Version, e.Unproven = entryOf(kv.Value, kv.ModRevision, f.at)
	}
	f.next = kv.ModRevision + 1
	f.store.past.see(f.at, kv.ModRevision)
	f.hub.Deliver(string(bytes.TrimPrefix(kv.Key, []byte(f.store.prefix))), e)
}
