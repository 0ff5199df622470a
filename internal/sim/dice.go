package main

import (
	"math/rand/v2"
	"time"
)

// dice makes all random decisions. The same order of draws gives the same results.
type dice struct{ rng *rand.Rand }

func newDice(seed, stream uint64) dice { return dice{rand.New(rand.NewPCG(seed, stream))} }

func (d dice) chance(p float64) bool { return d.rng.Float64() < p }

func (d dice) pick(ds ...time.Duration) time.Duration { return ds[d.rng.IntN(len(ds))] }

// span returns a random time up to most, often very short.
func (d dice) span(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	if d.chance(0.2) {
		most = most/50 + 1
	}
	return time.Duration(d.rng.Int64N(int64(most)))
}
