package s3object

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/driver"
)

const (
	contenders = 16 // writers in a race
	// races of each kind: all but 0.2 % of the servers that let a second writer win in one of five
	// are found, though four races decide nothing
	races   = 32
	abreast = 4 // races at a time
)

// race is one object that many writers write to at once.
type race struct {
	key     string
	before  driver.Version
	version driver.Version // afterwards, as far as known

	winners int
	refused int
	failed  error // why an outcome is not known
	lost    bool  // the acknowledged write is not there, and another state is
	late    bool  // the earlier state is still there
}

// atRaces first creates objects, then replaces them.
func (p *probe) atRaces(ctx context.Context) error {
	all := make([]race, p.races)
	for i := range all {
		all[i].key = p.name()
	}
	if p.creates {
		if err := p.hold(ctx, "If-None-Match", "create the same object", all); err != nil {
			return err
		}
	}
	if !p.creates || !p.swaps {
		return nil
	}
	return p.hold(ctx, "If-Match", "replace the same version", settled(all))
}

// settled returns races over objects that exist.
func settled(all []race) []race {
	var again []race
	for _, r := range all {
		if r.version != "" {
			again = append(again, race{key: r.key, before: r.version})
		}
	}
	return again
}

// hold repeats, for a while, races in which the server was too busy to look at any write.
func (p *probe) hold(ctx context.Context, setting, what string, all []race) error {
	for range tries {
		lanes(len(all), abreast, func(i int) {
			if !all[i].held() {
				p.start(ctx, &all[i])
			}
		})
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !slices.ContainsFunc(all, race.busy) {
			break
		}
		if err := wait(ctx, p.pause); err != nil {
			return err
		}
	}
	p.judge(setting, what, all)
	return nil
}

// held reports whether the race was run, and needs no further try.
func (r race) held() bool { return r.winners+r.refused > 0 || r.failed != nil && !r.busy() }

func (r race) busy() bool { return r.winners+r.refused == 0 && look(r.failed).busy() }

// start runs a race, and reads the result. Writers of one race start at one moment.
func (p *probe) start(ctx context.Context, r *race) {
	c := condition{r.before, p.bare}
	versions, errs := make([]driver.Version, contenders), make([]error, contenders)
	var all sync.WaitGroup
	gun := make(chan struct{})
	for i := range contenders {
		all.Go(func() {
			<-gun
			versions[i], errs[i] = p.s.put(ctx, r.key, c, fmt.Appendf(nil, `{"race":%q,"writer":%d}`, c.prev, i))
		})
	}
	close(gun)
	all.Wait()
	r.failed = nil // of an earlier try
	r.count(versions, errs)
	r.settle(p.s.get(ctx, r.key))
}

func (r *race) count(versions []driver.Version, errs []error) {
	for i, err := range errs {
		switch {
		case err == nil:
			r.winners++
			r.version = versions[i]
		case look(err).conflict():
			r.refused++
		default:
			r.failed = err
		}
	}
}

// settle compares the present state with the acknowledged one, where only one write can have been
// applied.
func (r *race) settle(e driver.Entry, err error) {
	certain := r.winners == 1 && r.failed == nil
	switch {
	case err != nil:
		r.failed = err
	case e.Version == r.version:
	case !certain:
		r.version = e.Version
	case e.Version == r.before:
		r.late = true
	default:
		r.lost, r.version = true, e.Version
	}
}

// judge makes at most one finding from all races.
func (p *probe) judge(setting, what string, all []race) {
	var doubled, lost, undecided int
	var failed error
	for _, r := range all {
		switch {
		case r.winners > 1:
			doubled++
		case r.lost:
			lost++
		case r.winners == 0:
			undecided++
			failed = r.failed
		}
		if r.late {
			p.late()
		}
	}
	held := fmt.Sprintf("of %d races in which %d writers try to %s", len(all), contenders, what)
	switch {
	case doubled > 0:
		p.find(driver.Unsafe, setting, fmt.Sprintf("in %d %s, more than one writer gets a success: there will be two leaders",
			doubled, held), anotherServer)
	case lost > 0:
		p.find(driver.Unsafe, setting, fmt.Sprintf("in %d %s, another write than the acknowledged one is there afterwards: there "+
			"will be two leaders", lost, held), anotherServer)
	case undecided > len(all)/8:
		p.find(driver.Warning, setting, fmt.Sprintf("in %d %s, no writer got a success, so these races prove nothing (the last "+
			"reason: %v)", undecided, held, failed), "inspect again when the server is less busy, or allow more requests")
	}
}
