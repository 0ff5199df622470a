package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"time"
)

// options are the flags.
type options struct {
	seeds, seed  uint64
	verbose      bool
	json, all    bool
	bug          string
	shows        string
	bugs, mark   bool
	part         string
	picture      bool
	cfg          settings
	seedsByHands bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seeds, "seeds", 5000, "how many seeds to run; for bugs 200 unless given")
	flag.Uint64Var(&o.seed, "seed", 0, "run this seed alone")
	flag.BoolVar(&o.verbose, "v", false, "print every event (with -seed), or every seed that fails")
	flag.BoolVar(&o.json, "json", false, "print the result as one line for programs")
	flag.BoolVar(&o.all, "all", true, "go on after the first seed that fails")
	flag.StringVar(&o.bug, "bug", "", "run with this planted bug")
	flag.BoolVar(&o.bugs, "bugs", false, "run every planted bug in turn and print a table")
	flag.StringVar(&o.shows, "shows", "", "count only faults that match this regular expression")
	flag.StringVar(&o.part, "part", "", "with -bugs, run part K of N parts of the bugs: K/N, with K counted modulo N")
	flag.BoolVar(&o.mark, "markdown", false, "print the table as docs/planted-bugs.md has it")
	flag.BoolVar(&o.picture, "picture", false, "draw one lease's life, as docs/lease.txt has it")
	flag.DurationVar(&o.cfg.Hour, "for", time.Hour, "virtual time of each run")
	flag.Float64Var(&o.cfg.Drift, "drift", 1, "the error of clocks, as a multiple of the promised bound")
	flag.Parse()
	flag.Visit(func(f *flag.Flag) { o.seedsByHands = o.seedsByHands || f.Name == "seeds" })
	os.Exit(o.main())
}

func (o *options) main() int {
	debug.SetGCPercent(800) // a run leaves much garbage and keeps little
	if (o.bug != "" || o.bugs) && !o.seedsByHands {
		o.seeds = standard
	}
	switch {
	case o.picture:
		picture(os.Stdout)
		return 0
	case o.bugs:
		return listBugs(o)
	case o.bug != "":
		return replay(o.bug, fmt.Sprintf("-seeds=%d", o.seeds), fmt.Sprintf("-seed=%d", o.seed),
			fmt.Sprintf("-v=%t", o.verbose), fmt.Sprintf("-for=%v", o.cfg.Hour), fmt.Sprintf("-drift=%v", o.cfg.Drift))
	case o.seed != 0:
		return one(o.seed, o.cfg, o.verbose)
	}
	return many(o)
}

func one(seed uint64, cfg settings, verbose bool) int {
	var trace io.Writer
	if verbose {
		trace = os.Stdout
	}
	s, err := run(seed, cfg, trace)
	fmt.Printf("seed %d: %d operations, %d elections, led %v\n", seed, s.ops, s.elections, s.led)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func many(o *options) int {
	start := time.Now()
	shows, err := regexp.Compile(o.shows)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	t := &total{list: o.verbose, shows: shows}
	t.sweep(o.seeds, o.cfg, !o.all)
	if o.json {
		_ = json.NewEncoder(os.Stdout).Encode(t.verdict(o.cfg))
	} else {
		t.print(o.cfg, time.Since(start))
	}
	if t.fault == nil {
		return 0
	}
	return 1
}
