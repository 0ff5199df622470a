// Command ticksim simulates jobs: it runs the code that decides, package ticks, through days of
// virtual time with faults, and judges by the first acts of each tick. With -bugs it plants bugs in
// that code, one for each rule, and fails unless it notices each of them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"sync"
)

func main() { os.Exit(run(os.Args[1:])) }

// verdict is the result of a run over several seeds.
type verdict struct {
	Seeds  uint64
	First  uint64 // the first seed that failed; 0: none did
	Failed uint64
	Fault  string // of the first
	Stats  stats
}

func run(args []string) int {
	flags := flag.NewFlagSet("ticksim", flag.ExitOnError)
	seeds := flags.Uint64("seeds", standard, "run seeds 1 to this `number`")
	seed := flags.Uint64("seed", 0, "run this seed alone")
	verbose := flags.Bool("v", false, "print what happens")
	asJSON := flags.Bool("json", false, "print the verdict as JSON")
	year := flags.Bool("year", false, "each seed is a year of daily and hourly jobs in one of three zones, with rarer faults")
	all := flags.Bool("all", false, "go on after the first seed that fails")
	shows := flags.String("shows", "", "only faults that match this `expression` count")
	bugs := flags.Bool("bugs", false, "plant each bug, and fail unless each is found")
	bug := flags.String("bug", "", "plant the bug of this `name`, and run -seed or -seeds")
	_ = flags.Parse(args)
	switch {
	case *bugs:
		return hunt(os.Stdout)
	case *bug != "":
		return replay(*bug, "-seeds", fmt.Sprint(*seeds), "-seed", fmt.Sprint(*seed), fmt.Sprintf("-v=%t", *verbose))
	}
	first, last := uint64(1), *seeds
	if *seed > 0 {
		first, last = *seed, *seed
	}
	var out io.Writer
	if *verbose {
		out = os.Stdout
	}
	v := sweep(first, last, *year, *all, regexp.MustCompile(*shows), out)
	if *asJSON {
		_ = json.NewEncoder(os.Stdout).Encode(v)
		return 0
	}
	fmt.Printf("%+v\n", v.Stats)
	if v.Failed > 0 {
		fmt.Printf("%d of %d seeds fail, first seed %d: %s\n", v.Failed, v.Seeds, v.First, v.Fault)
		return 1
	}
	return 0
}

// sweep runs seeds on all cores, in order, until one fails with a fault that counts.
func sweep(first, last uint64, year, all bool, shows *regexp.Regexp, out io.Writer) (v verdict) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next := first
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				s := next
				next++
				done := s > last || v.Failed > 0 && !all
				mu.Unlock()
				if done {
					return
				}
				w := newWorld(s, year, out)
				err := w.run()
				mu.Lock()
				v.Seeds++
				v.Stats.add(&w.check.stats)
				if err != nil && shows.MatchString(err.Error()) {
					v.Failed++
					if v.First == 0 || s < v.First {
						v.First, v.Fault = s, err.Error()
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return v
}

func (s *stats) add(o *stats) {
	s.Days += o.Days
	s.Ticks += o.Ticks
	s.Ran += o.Ran
	s.Runs += o.Runs
	s.Terms += o.Terms
	s.Damages += o.Damages
	s.Unnoticed += o.Unnoticed
	s.Twice += o.Twice
}
