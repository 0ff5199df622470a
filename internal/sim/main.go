package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	seeds := flag.Uint64("seeds", 5000, "how many seeds to run")
	seed := flag.Uint64("seed", 0, "run this seed alone")
	verbose := flag.Bool("v", false, "print every event (with -seed)")
	hour := flag.Duration("for", time.Hour, "virtual time of each run")
	excess := flag.Float64("drift", 1, "what clocks do, as a multiple of the promised bound")
	flag.Parse()
	cfg := settings{Hour: *hour, Drift: *excess}
	if *seed != 0 {
		os.Exit(one(*seed, cfg, *verbose))
	}
	os.Exit(many(*seeds, cfg))
}

func one(seed uint64, cfg settings, verbose bool) int {
	var s stats
	var err error
	if verbose {
		s, err = run(seed, cfg, os.Stdout)
	} else {
		s, err = run(seed, cfg, nil)
	}
	fmt.Printf("seed %d: %d operations, %d elections, led %v\n", seed, s.ops, s.elections, s.led)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// total is what a range of seeds came to.
type total struct {
	ran, failed atomic.Uint64
	mu          sync.Mutex
	sum         stats
	first       uint64
	fault       error
}

// sweep runs seeds 1 to n on every core, until one fails if so wished.
func sweep(n uint64, cfg settings, stopAtFirst bool) *total {
	t := &total{}
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1); seed <= n; seed = next.Add(1) {
				s, err := run(seed, cfg, nil)
				t.add(seed, s, err)
				if err != nil && stopAtFirst {
					return
				}
			}
		})
	}
	wg.Wait()
	return t
}

func (t *total) add(seed uint64, s stats, err error) {
	t.ran.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.ops += s.ops
	t.sum.elections += s.elections
	t.sum.led += s.led
	if err != nil {
		t.failed.Add(1)
		if t.fault == nil || seed < t.first {
			t.first, t.fault = seed, err
		}
	}
}

func many(n uint64, cfg settings) int {
	start := time.Now()
	t := sweep(n, cfg, false)
	took := time.Since(start)
	hours := float64(t.ran.Load()) * cfg.Hour.Hours()
	fmt.Printf("%d seeds of %v in %v: %.0f election-hours a second, %d operations, %d elections, led %.1f %% of the time\n",
		t.ran.Load(), cfg.Hour, took.Round(time.Millisecond), hours/took.Seconds(), t.sum.ops, t.sum.elections,
		100*t.sum.led.Hours()/hours)
	if t.fault == nil {
		return 0
	}
	fmt.Printf("%d seeds failed, the first: seed %d: %v\nreplay: go run ./internal/sim -seed %d -v\n", t.failed.Load(), t.first, t.fault, t.first)
	return 1
}
