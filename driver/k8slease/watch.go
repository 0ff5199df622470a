package k8slease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/tenure-go/tenure/driver/abandon"
)

// follow is a watches.Follow. It lists the Leases, pushes their states, and follows the changes
// after the list. So no change is missed, whatever came before.
func (s *Store) follow(ctx context.Context, opened func(missed bool)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := abandon.Run(ctx, &s.calls, func() (*stream, error) { return s.open(ctx) }, (*stream).close)
	if err != nil {
		return err
	}
	defer w.close()
	s.following.Store(&cancel)
	defer s.following.CompareAndSwap(&cancel, nil)
	opened(false)
	if !s.history.progressed(w.start.generation, w.start.revision) {
		return errRestored // renew may have come before this watch could be ended
	}
	s.pushAll(w.start)
	return s.pushChanges(w)
}

// renew ends the watch of the namespace, because it began in another history or with other
// credentials. The hub begins another one.
func (s *Store) renew() {
	if cancel := s.following.Load(); cancel != nil {
		(*cancel)()
	}
}

// stream is one watch of the namespace. It ends with its context.
type stream struct {
	start  listed // before all its events
	events *json.Decoder
	body   io.Closer
}

func (w *stream) close() { _ = w.body.Close() }

func (s *Store) open(ctx context.Context) (*stream, error) {
	all, err := s.list(ctx, s.history.before(""), nil)
	if errors.Is(err, errRestored) {
		all, err = s.list(ctx, s.history.before(""), nil)
	}
	if err != nil {
		return nil, err
	}
	body, err := s.client.send(ctx, http.MethodGet, s.client.path("", url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {fmt.Sprint(all.revision)},
	}), nil)
	if err != nil {
		return nil, err
	}
	return &stream{all, json.NewDecoder(body), body}, nil
}

// pushAll pushes the states of all keys that are watched.
func (s *Store) pushAll(all listed) {
	present := map[string]*lease{}
	for _, l := range all.items {
		present[l.name] = l
	}
	for _, key := range s.hub.Keys() {
		if l := present[Name(key)]; l != nil {
			s.push(all.generation, key, l)
		} else {
			s.pushAbsence(all.generation, key, all.revision)
		}
	}
}

// push pushes a state to the watches of a key, if its history is the present one.
func (s *Store) push(generation uint64, key string, l *lease) {
	if e, ok := s.history.pushed(generation, l); ok {
		s.hub.Deliver(key, l.as(key, e))
	}
}

// pushAbsence pushes that a key has no Lease at a revision, if its history is the present one.
func (s *Store) pushAbsence(generation uint64, key string, revision uint64) {
	if e, err := s.history.absent(generation, Name(key), revision); err == nil {
		s.hub.Deliver(key, e)
	}
}

// event is one of a watch. The object is a Lease, a Status, or one that has only a
// resourceVersion.
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// pushChanges pushes the changes of a stream until it ends. A change goes to the watches of the key
// that the Lease holds. An election of another key that would have this Lease learns of it when it
// reads.
func (s *Store) pushChanges(w *stream) error {
	for {
		var e event
		if err := w.events.Decode(&e); err != nil {
			return err
		}
		if e.Type == "ERROR" { // such as a resourceVersion that is too old
			return parseStatus(0, "", e.Object)
		}
		l := new(lease)
		if err := json.Unmarshal(e.Object, l); err != nil {
			return err
		}
		if !s.history.progressed(w.start.generation, l.revision) {
			return errRestored
		}
		switch key := l.key(); {
		case e.Type == "BOOKMARK" || !s.hub.Watched(key):
		case e.Type == "DELETED":
			s.pushAbsence(w.start.generation, key, l.revision)
		default:
			s.push(w.start.generation, key, l)
		}
	}
}
