package main

import (
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// tally counts the requests that clients of Kafka write, by their kinds, which is what brokers receive.
type tally struct {
	mu   sync.Mutex
	kind map[string]int
}

var _ kgo.HookBrokerWrite = (*tally)(nil)

func newTally() *tally { return &tally{kind: map[string]int{}} }

// OnBrokerWrite counts a request that was written.
func (t *tally) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kind[kmsg.NameForKey(key)]++
}

func (t *tally) all() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.kind)
}
