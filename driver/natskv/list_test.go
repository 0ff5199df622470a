package natskv

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// lists is a bucket whose first lists stop after one key: the server that has their consumer is
// dead.
type lists struct {
	jetstream.KeyValue
	dead, made int
}

type fakeList chan string

func (l fakeList) Keys() <-chan string { return l }
func (fakeList) Stop() error           { return nil }

func (l *lists) Bucket() string { return "elections" }

func (l *lists) ListKeys(context.Context, ...jetstream.WatchOpt) (jetstream.KeyLister, error) {
	l.made++
	list := make(fakeList, 2)
	list <- "b"
	if l.made > l.dead {
		list <- "a"
		close(list)
	}
	return list, nil
}

// TestKeysOfADeadServer: a list that falls silent is made again, until the context ends.
func TestKeysOfADeadServer(t *testing.T) {
	for _, c := range []struct {
		dead int
		want []string
	}{{0, []string{"a", "b"}}, {2, []string{"a", "b"}}, {1000, nil}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			fake := &lists{dead: c.dead}
			began := time.Now()
			got, err := FromKeyValue(fake).Keys(ctx)
			if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
				t.Errorf("%d silent lists: %q, %v", c.dead, got, err)
			}
			if took := time.Since(began); took > min(time.Minute, time.Duration(c.dead)*silence) {
				t.Errorf("%d silent lists take %v", c.dead, took)
			}
		})
	}
}
