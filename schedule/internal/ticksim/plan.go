package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure/schedule/internal/calendar"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// plan holds the play of one seed: the schedule, its policy, and the faults.
type plan struct {
	spec, zone  string
	start       time.Time
	length      time.Duration
	cal         *calendar.Calendar
	atLeastOnce bool
	catchUp     ticks.CatchUp
	queue       bool
	window      time.Duration
	needs       time.Duration
	lease       time.Duration
	run         time.Duration // mean duration of a run
	rare        time.Duration // factor by which faults are rarer, and looks at the world
	ticks       int           // the number of ticks, if it is known; 0: it is not

	// The faults.
	apart     time.Duration // the largest error of a wall clock
	steps     bool          // wall clocks change within that bound
	fast      bool          // one wall clock is an hour fast
	crashes   bool
	pauses    bool
	handOvers bool
	sleeps    bool // all members are away for a while
	lossy     bool // requests and answers are lost, late and repeated
	stale     bool // reads may show an earlier state
	damage    damage
	eras      bool // the store has eras
	unproven  bool // the store marks restored states
	falls     bool // tokens fall when the store is damaged
	replan    bool // the schedule changes
}

// damage happens to the store.
type damage uint8

const (
	unharmed  damage = iota
	recreated        // it is empty, and its versions recur
	restored         // an older state is put back
	deleted          // the key of the job is removed
)

// changes are the days of 2026 at which the clocks of each zone change.
var changes = map[string][]string{
	"Europe/Berlin":       {"2026-03-29", "2026-10-25"},
	"America/New_York":    {"2026-03-08", "2026-11-01"},
	"Australia/Lord_Howe": {"2026-04-05", "2026-10-04"},
}

var zones = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}

func newPlan(r *rand.Rand) *plan {
	chance := func(p float64) bool { return r.Float64() < p }
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	p := &plan{
		spec: pick("*/5 * * * *", "*/15 * * * *", "*/10 1-4 * * *", "0 * * * *", "30 1,2,3 * * *", "* * * * *"),
		zone: pick(zones...), length: 36 * time.Hour, lease: time.Duration(5+r.IntN(40)) * time.Second,
		atLeastOnce: chance(0.5), catchUp: ticks.CatchUp(r.IntN(3)), queue: chance(0.5),
		window: time.Hour, run: []time.Duration{time.Second, 40 * time.Second, 4 * time.Minute}[r.IntN(3)],
		rare: 1, apart: 10 * time.Second, steps: chance(0.3), fast: chance(0.12), crashes: chance(0.6), pauses: chance(0.5),
		handOvers: chance(0.5), sleeps: chance(0.3), lossy: chance(0.6), stale: chance(0.3), replan: chance(0.15),
		eras: chance(0.5), unproven: chance(0.4), falls: chance(0.5),
	}
	if chance(0.5) && !p.fast { // the promise about damage needs sound clocks (J6)
		p.damage = damage(1 + r.IntN(3))
	}
	if chance(0.3) {
		p.needs = p.lease / 3
	}
	if p.fast && p.spec == "* * * * *" {
		p.spec = "*/5 * * * *"
	}
	day, err := time.Parse(time.DateOnly, changes[p.zone][r.IntN(2)])
	if err != nil {
		panic(err)
	}
	p.start = day.Add(-time.Duration(12+r.IntN(12)) * time.Hour)
	p.setSpec(p.spec)
	return p
}

// newYear returns the plan of a whole year: the jobs are daily and hourly, in one zone after the
// other, and the faults are rarer. The number of ticks does not come from package calendar.
func newYear(seed uint64, r *rand.Rand) *plan {
	p := newPlan(r)
	jobs := []struct {
		spec  string
		ticks int
	}{{"30 2 * * *", 365}, {"0 * * * *", 365 * 24}, {"30 1,3 * * *", 2 * 365}, {"*/30 * * * *", 365 * 48}}
	job := jobs[(seed-1)/3%uint64(len(jobs))]
	p.zone, p.ticks = zones[(seed-1)%3], job.ticks
	if p.zone == "Australia/Lord_Howe" && p.ticks == 365*24 {
		p.ticks-- // two changes by half an hour put an hour and a half between two full hours
	}
	p.rare, p.length, p.replan = 12, 365*24*time.Hour, false
	p.setSpec(job.spec)
	p.start = time.Date(2026, 1, 1, 0, 0, 0, 0, p.location()).Add(-time.Second)
	return p
}

func (p *plan) location() *time.Location {
	zone, err := time.LoadLocation(p.zone)
	if err != nil {
		panic(err)
	}
	return zone
}

func (p *plan) setSpec(spec string) {
	var err error
	if p.cal, err = calendar.Parse(spec, p.location()); err != nil {
		panic(err)
	}
	p.spec = spec
}

func (p *plan) String() string { return fmt.Sprintf("%+v", *p) }
