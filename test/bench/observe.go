package main

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// observer reports the operations of a store, and counts requests. Each client embeds its own store
// beside it, because elections find a store's optional abilities by its type.
type observer struct {
	me  identity
	say func(report)
	mu  *sync.Mutex
	all counts
}

func (o observer) count(kind string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[kind]++
}

func (o observer) requests() counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.all)
}

// swap reports a write before it is sent, so that the last write of a killed process is known, and
// again with its outcome.
func (o observer) swap(ctx context.Context, s driver.Store, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	c := peek(value)
	r := report{What: sending, Election: key, Prev: string(prev), Token: c.Term, Released: c.Released,
		At: machine.Now()}
	o.say(r)
	version, err := s.CompareAndSwap(ctx, key, prev, value)
	r.What, r.Version, r.Until = wrote, string(version), machine.Now()
	if err != nil {
		r.What, r.Error = strayed, err.Error()
	}
	o.say(r)
	return version, err
}

// read reports how old another leader's record looks, by the times of day. A reader that relied on
// them would take over too early: a planted mistake.
func (o observer) read(ctx context.Context, s driver.Store, key string) (driver.Entry, error) {
	e, err := s.Read(ctx, key)
	if err != nil || !o.me.Judge {
		return e, err
	}
	if c := peek(e.Value); c.LeaderID != "" && c.LeaderID != o.me.ID && !c.Released {
		age := time.Now().Add(o.me.Wall).Sub(c.LastUpdated)
		o.say(report{What: judged, Election: key, At: machine.Now(), Age: age})
	}
	return e, nil
}

// content is the part of a record that the bench reads.
type content struct {
	LeaderID    string    `json:"leaderID"`
	LastUpdated time.Time `json:"lastUpdated"`
	Term        uint64    `json:"term"`
	Released    bool      `json:"released"`
}

// peek is empty for a value that is no record.
func peek(value []byte) content {
	var c content
	if json.Unmarshal(value, &c) != nil {
		return content{}
	}
	return c
}
