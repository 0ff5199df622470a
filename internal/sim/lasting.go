package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"
)

// A lasting run takes new seeds until its time is over. With a file it goes on after the seeds of
// earlier runs, so that many hours can be simulated in parts.

// perPart is the number of seeds of one line in the file.
const perPart = 1000

// part is the result of some seeds: one line of the file, in JSON.
type part struct {
	From       uint64  `json:"from"` // the first seed
	Seeds      uint64  `json:"seeds"`
	Hours      float64 `json:"hours"` // simulated
	Took       float64 `json:"took"`  // seconds of real time
	Operations int     `json:"operations"`
	Elections  int     `json:"elections"`
	Counted    uint64  `json:"counted"` // the runs that count for Led, see plan.free
	Led        float64 `json:"led"`     // hours with a leader in these runs
	Failed     uint64  `json:"failed,omitempty"`
	First      uint64  `json:"first,omitempty"` // the first seed that failed
	Fault      string  `json:"fault,omitempty"`
}

// lasting runs parts of n seeds until o.within is over, at least one part. It prints the total and
// returns the exit code.
func (o *options) lasting(n uint64, out io.Writer) int {
	start := time.Now()
	parts, err := readParts(o.into)
	for again := err == nil; again; again = err == nil && time.Since(start) < o.within {
		p := o.simulate(nextSeed(parts, o.random), n)
		parts, err = append(parts, p), appendPart(o.into, p)
	}
	if err == nil {
		err = report(out, parts, o.cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// nextSeed returns the seed after the last part; without a part, 1 or a random one.
func nextSeed(parts []part, random bool) uint64 {
	switch n := len(parts); {
	case n > 0:
		return parts[n-1].From + parts[n-1].Seeds
	case random:
		return 1 + rand.Uint64N(1<<48)
	}
	return 1
}

// simulate plays n seeds in a row, from the given one on.
func (o *options) simulate(from, n uint64) part {
	start := time.Now()
	t := &total{list: true, shows: anyFault}
	t.run(from, n, o.cfg, false)
	p := part{
		From: from, Seeds: t.ran, Hours: float64(t.ran) * o.cfg.Hour.Hours(), Took: time.Since(start).Seconds(),
		Operations: t.sum.ops, Elections: t.sum.elections, Counted: t.free, Led: t.sum.led.Hours(),
		Failed: t.failed, First: t.first,
	}
	if t.fault != nil {
		p.Fault = t.fault.Error()
	}
	return p
}

// report prints the total of the parts. It returns an error if a seed failed, or if there was a
// leader for too little of the time.
func report(out io.Writer, parts []part, cfg settings) error {
	var t total
	var hours, took float64
	var faults []error
	for _, p := range parts {
		hours, took = hours+p.Hours, took+p.Took
		t.ran, t.free = t.ran+p.Seeds, t.free+p.Counted
		t.sum.ops, t.sum.elections = t.sum.ops+p.Operations, t.sum.elections+p.Elections
		t.sum.led += time.Duration(p.Led * float64(time.Hour))
		if p.Failed > 0 {
			faults = append(faults, fmt.Errorf("%d of the seeds from %d on failed, the first: seed %d: %s", p.Failed, p.From, p.First, p.Fault))
		}
	}
	fmt.Fprintf(out, "%d seeds, %.0f hours in %.0f s: %d operations, %d elections, led %.1f %% of the time\n",
		t.ran, hours, took, t.sum.ops, t.sum.elections, 100*t.led(cfg))
	if len(faults) == 0 && t.ran >= standard {
		return t.idle(cfg, false)
	}
	return errors.Join(faults...)
}

// readParts reads the file of a lasting run. A file that does not exist has no parts.
func readParts(path string) (parts []part, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	for lines := json.NewDecoder(f); ; {
		var p part
		err := lines.Decode(&p)
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("part %d of %s: %w", len(parts)+1, path, err)
		}
		parts = append(parts, p)
	}
}

// appendPart adds a line to the file.
func appendPart(path string, p part) error {
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(p), f.Close())
}
