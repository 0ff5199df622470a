// Command sim runs many members of one election over a simulated store in virtual time. It injects
// faults, and checks after every event that the rules of Tenure hold.
//
//	go run ./internal/sim                         5,000 seeds of one virtual hour each
//	go run ./internal/sim -seeds 100000           more seeds
//	go run ./internal/sim -seed 17 -v             one seed, with every event
//	go run ./internal/sim -seed 17 -trace FILE    one seed, with a trace of each member
//	go run ./internal/sim -bug absence-claimed    200 seeds with a rule left out: must fail
//	go run ./internal/sim -bugs                   every planted bug in turn
//	go run ./internal/sim -drift 5                clocks off by up to 5 times the bound: must fail
//	go run ./internal/sim -picture                one lease's life, as docs/lease.txt has it
//
// A seed decides everything: the faults, their times, and all random numbers. The same seed gives
// the same run.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/internal/trace"
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
	trace        string
	picture      bool
	within       time.Duration
	into         string
	random       bool
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
	flag.StringVar(&o.bug, "bug", "", "run with this planted bug, or the test that shows it")
	flag.BoolVar(&o.bugs, "bugs", false, "run every planted bug in turn and print a table")
	flag.StringVar(&o.shows, "shows", "", "count only faults that match this regular expression")
	flag.StringVar(&o.part, "part", "", "with -bugs, run part K of N parts of the bugs: K/N, with K counted modulo N")
	flag.BoolVar(&o.mark, "markdown", false, "print the table as docs/planted-bugs.md has it")
	flag.StringVar(&o.trace, "trace", "", "with -seed, write a trace of all members to this file (docs/trace.md)")
	flag.BoolVar(&o.picture, "picture", false, "draw one lease's life, as docs/lease.txt has it")
	flag.DurationVar(&o.within, "within", 0, "run new seeds for this real time, instead of a number of seeds")
	flag.StringVar(&o.into, "into", "", "with -within, go on after the seeds of this file, and add the results to it")
	flag.BoolVar(&o.random, "random", false, "with -within, begin at a random seed")
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
		return o.one()
	case o.within > 0:
		return o.lasting(perPart, os.Stdout)
	}
	return many(o)
}

// one runs the seed that is given.
func (o *options) one() int {
	var events io.Writer
	if o.verbose {
		events = os.Stdout
	}
	var lines bytes.Buffer
	if o.trace != "" {
		o.cfg.trace = trace.NewLog(&lines, math.MaxInt)
	}
	s, err := run(o.seed, o.cfg, events)
	fmt.Printf("seed %d: %d operations, %d elections, led %v\n", o.seed, s.ops, s.elections, s.led)
	o.cfg.trace.Flush(time.Hour)
	if o.trace != "" {
		err = errors.Join(err, os.WriteFile(o.trace, lines.Bytes(), 0o600))
	}
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

// standard is the number of seeds within which every planted bug must be found.
const standard = 200

// total is the sum over a range of seeds.
type total struct {
	mu          sync.Mutex
	ran, failed uint64
	free        uint64 // the runs that count for the time with a leader (see plan.free)
	sum         stats
	first       uint64
	fault       error
	list        bool           // print every seed that fails
	shows       *regexp.Regexp // the faults that count
	others      uint64         // seeds that failed with another fault
	other       error
}

// sweep runs seeds 1 to n on all cores. With stopAtFirst it ends when one fails.
func sweep(n uint64, cfg settings, stopAtFirst bool) *total {
	t := &total{shows: anyFault}
	t.sweep(n, cfg, stopAtFirst)
	return t
}

var anyFault = regexp.MustCompile("")

func (t *total) sweep(n uint64, cfg settings, stopAtFirst bool) {
	t.run(1, n, cfg, stopAtFirst)
	if t.fault == nil && t.ran >= standard {
		t.fault = t.idle(cfg, t.ran == standard)
	}
}

// run plays n seeds in a row, from the given one on, on all cores.
func (t *total) run(from, n uint64, cfg settings, stopAtFirst bool) {
	var next atomic.Uint64
	next.Store(from - 1)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1); seed < from+n; seed = next.Add(1) {
				if s, err := run(seed, cfg, nil); t.add(seed, s, err) && stopAtFirst {
					return
				}
			}
		})
	}
	wg.Wait()
}

// add adds the result of one run. It reports whether any has failed.
func (t *total) add(seed uint64, s stats, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ran++
	t.sum.ops += s.ops
	t.sum.elections += s.elections
	if s.free {
		t.free++
		t.sum.led += s.led
	}
	if err != nil && t.list {
		fmt.Printf("seed %d: %v\n", seed, err)
	}
	switch {
	case err == nil:
	case !t.shows.MatchString(err.Error()):
		t.others, t.other = t.others+1, err
	default:
		t.failed++
		if t.fault == nil || seed < t.first {
			t.first, t.fault = seed, err
		}
	}
	return t.fault != nil
}

// idle checks the time with a leader over many runs: the sum shows a loss that is small in each
// run. The standard seeds are always the same, so their sum may not fall at all. Others may be four
// standard errors below the mean of 14,000 seeds.
func (t *total) idle(cfg settings, standard bool) error {
	const mean, deviation = 78.3, 11.4 // the deviation among single runs
	least := mean - 4*deviation/math.Sqrt(float64(max(t.free, 1)))
	if standard {
		least = 78.3
	}
	if led := 100 * t.led(cfg); led < least {
		return fmt.Errorf("there was a leader for only %.1f %% of the time, over all seeds, less than %.1f %%", led, least)
	}
	return nil
}

// led returns the part of the time with a leader, over the runs that count for it.
func (t *total) led(cfg settings) float64 {
	return t.sum.led.Hours() / (float64(max(t.free, 1)) * cfg.Hour.Hours())
}

func (t *total) verdict(cfg settings) verdict {
	v := verdict{Ran: t.ran, Failed: t.failed, First: t.first, Led: t.led(cfg)}
	if t.failed > 0 {
		v.Fault = t.fault.Error()
	}
	if t.others > 0 {
		v.Others, v.Other = t.others, t.other.Error()
	}
	return v
}

func (t *total) print(cfg settings, took time.Duration) {
	hours := float64(t.ran) * cfg.Hour.Hours()
	fmt.Printf("%d seeds of %v in %v: %.0f election-hours a second, %d operations, %d elections, led %.1f %% of the time\n",
		t.ran, cfg.Hour, took.Round(time.Millisecond), hours/took.Seconds(), t.sum.ops, t.sum.elections, 100*t.led(cfg))
	switch {
	case t.fault == nil:
		fmt.Println("no fault found")
	case t.failed == 0:
		fmt.Println(t.fault)
	default:
		fmt.Printf("%d seeds failed, the first: seed %d: %v\nreplay: go run ./internal/sim -seed %d -v\n",
			t.failed, t.first, t.fault, t.first)
	}
}

// rescue turns a panic into a fault: a bug may cause one.
func rescue(fault *error) {
	if p := recover(); p != nil {
		*fault = errors.Join(*fault, fmt.Errorf("panic: %v", p))
	}
}
