package main

import (
	"strconv"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/schedule/internal/ticks"
)

// store is the cell of one job. Each state has a version, which recurs where history begins again.
type store struct {
	w        *world
	cell     driver.Entry
	version  uint64
	era      uint64
	unproven bool
	past     []snapshot
}

type snapshot struct {
	at      time.Time
	cell    driver.Entry
	version uint64
}

func (s *store) read() driver.Entry {
	e := s.cell
	if s.w.plan.stale && s.w.chance(0.2) {
		for i := len(s.past) - 1; i >= 0 && s.w.now.Sub(s.past[i].at) < 5*time.Second; i-- {
			e = s.past[i].cell
		}
	}
	e.Era, e.Unproven = s.era, s.unproven && !e.Absent()
	return e
}

func (s *store) swap(prev driver.Version, value []byte) error {
	if prev != s.cell.Version {
		return driver.ErrConflict
	}
	s.set(driver.Entry{Value: value}, s.version+1)
	s.unproven = false
	state, err := ticks.Decode(value)
	if err != nil {
		panic(err)
	}
	s.w.check.wrote(&state)
	return nil
}

func (s *store) set(e driver.Entry, version uint64) {
	s.past = append(s.past, snapshot{s.w.now, s.cell, s.version})
	s.version = version
	e.Version = driver.Version(strconv.FormatUint(version, 10))
	s.cell = e
}

// harm damages the store.
func (s *store) harm(d damage) {
	switch d {
	case recreated:
		s.set(driver.Entry{}, 0)
	case deleted:
		s.set(driver.Entry{}, s.version+1)
		return
	case restored:
		if len(s.past) == 0 {
			return
		}
		back := s.past[s.w.rand.IntN(len(s.past))]
		for range 3 { // prefer a recent one
			if o := s.past[s.w.rand.IntN(len(s.past))]; o.at.After(back.at) {
				back = o
			}
		}
		s.set(back.cell, back.version)
		s.unproven = s.w.plan.unproven
	}
	if s.w.plan.eras {
		s.era++
	}
	s.past = s.past[:0]
}
