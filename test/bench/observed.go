package main

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// observed is a bucket of NATS whose writes are reported.
type observed struct {
	*natskv.Store
	say func(report)
}

// CompareAndSwap is the store's, between two reports.
func (o observed) CompareAndSwap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	return swap(ctx, o.Store, o.say, key, prev, value)
}

// swap reports a write before it is sent, so that of a killed process it is known what it sent last, and again when it is known
// what became of it.
func swap(ctx context.Context, s driver.Store, say func(report), key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	c := peek(value)
	r := report{What: sending, Election: key, Prev: string(prev), Token: c.Term, Released: c.Released, At: machine.Now()}
	say(r)
	version, err := s.CompareAndSwap(ctx, key, prev, value)
	r.What, r.Version, r.Until = wrote, string(version), machine.Now()
	if err != nil {
		r.What, r.Error = strayed, err.Error()
	}
	say(r)
	return version, err
}

// content is what is looked at of a record.
type content struct {
	LeaderID    string    `json:"leaderID"`
	LastUpdated time.Time `json:"lastUpdated"`
	Term        uint64    `json:"term"`
	Released    bool      `json:"released"`
}

// peek is empty for what is no record.
func peek(value []byte) content {
	var c content
	if json.Unmarshal(value, &c) != nil {
		return content{}
	}
	return c
}

// reporter writes one line for each report, in one call, so that nothing of it stays behind in a killed process.
func reporter(out io.Writer) func(report) {
	var mu sync.Mutex
	lines := json.NewEncoder(out)
	return func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = lines.Encode(r) // it fails only when the parent is gone
	}
}
