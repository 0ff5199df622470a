package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/watches"
)

// Watch calls see for changes of the cell until stop is called. All entries are unverified; one
// without a value only says that there may be a change. The first watch of a store subscribes, and
// the last one ends that. If the subscription is lost and the first attempt to subscribe again
// fails, see gets an entry with Lost.
//
// If the deadline of ctx comes while the store subscribes, the watch begins without pushes, and
// says so by an entry with Lost. It returns an error that wraps driver.ErrDenied if the right to
// subscribe is missing, the error of CheckKey, and any other error if the first attempt to
// subscribe fails or the store is closed.
func (s *Store) Watch(ctx context.Context, key string, see func(driver.Entry)) (stop func(), err error) {
	err = s.CheckKey(key)
	if err == nil {
		stop, err = s.hub.Watch(ctx, key, see)
	}
	if err != nil {
		return nil, fmt.Errorf("redisstore: watch %s: %w", s.place(key), explain(err))
	}
	return stop, nil
}

// follow is a watches.Follow. It subscribes, and receives messages until the subscription ends.
// Those that came meanwhile are missed.
func (s *Store) follow(ctx context.Context, opened func(missed bool)) error {
	hooked := rueidis.WithOnSubscriptionHook(ctx, func(p rueidis.PubSubSubscription) {
		if p.Kind == "subscribe" {
			opened(true)
		}
	})
	err := s.client.Receive(hooked, s.client.B().Subscribe().Channel(s.set.channel()).Build(), s.deliver)
	if err == nil {
		err = errors.New("the server ended the subscription")
	}
	return explain(err)
}

// deliver pushes what a message says. Anybody may publish: a message that no store has sent only
// makes elections read.
func (s *Store) deliver(m rueidis.PubSubMessage) {
	key, e, err := parseNews(m.Message)
	if err != nil {
		e = watches.Read
	}
	s.hub.Deliver(key, e)
}
