package s3object

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
	"github.com/tenure-go/tenure/driver/race"
)

// noVersion is an ETag that no object has. It has the form of an MD5 sum, because a server may
// ignore ETags that it does not understand.
const noVersion driver.Version = "00000000000000000000000000000000"

// newConditions returns the check before the first write of the store.
func (s *Store) newConditions() *object.Conditions {
	return object.NewConditions(object.Check{
		Put: func(ctx context.Context, key string, prev driver.Version, _ []byte) (driver.Version, error) {
			switch result, err := s.violate(ctx, key, condition{prev, s.form.isBare()}); result {
			case unclear:
				return "", s.explain(checking, err)
			case heeded:
				return "", driver.ErrConflict
			}
			return "", nil
		},
		Read: func(ctx context.Context, key string) (driver.Entry, error) {
			e, err := s.get(ctx, key)
			if err != nil {
				err = s.explain(checking, err)
			}
			return e, err
		},
		Never: noVersion, Place: s.place, Version: "version", Create: "If-None-Match", Replace: "If-Match",
		Remedy: anotherServer, CreateRemedy: notVersioned,
	})
}

// violate writes under a condition that the object should not meet. The object must exist, unless
// the condition is that it does not: a server may refuse every other condition on a missing object,
// and still ignore those that it does not understand.
func (s *Store) violate(ctx context.Context, key string, c condition) (treatment, error) {
	_, err := s.put(ctx, key, c, []byte(object.ConditionsText))
	switch a := look(err); {
	case err == nil, errors.Is(err, errNoETag):
		return ignored, nil
	case a.unmet(), c.prev != "" && a.missing():
		return heeded, nil
	}
	return unclear, err
}

func probeKey() string { return object.ProbePrefix + strings.ToLower(rand.Text()) }

// Remedies that inspections and the checks before the first write share.
const (
	anotherServer = "use a server, or a release of it, that keeps conditional writes, such as S3, MinIO or versitygw"
	notVersioned  = "; some only do so in buckets without versions"
)

// probe is one inspection.
type probe struct {
	s     *Store
	lease time.Duration
	races int
	pause time.Duration // before a repetition
	found []driver.Finding

	first   string         // the object that is written to one at a time
	version driver.Version // that it has
	old     driver.Version // that it had before
	bare    bool           // the form in which the server understands swaps
	creates bool           // create-only writes are refused where they should be
	swaps   bool           // likewise swaps
	stale   bool           // a read was seen to be late

	mu   sync.Mutex
	made []string
}

func newProbe(s *Store, lease time.Duration) *probe {
	p := &probe{s: s, lease: lease, races: races, pause: pause, bare: s.form.isBare(), creates: true, swaps: true}
	p.first = p.name()
	return p
}

func (p *probe) find(severity driver.Severity, setting, problem, remedy string) {
	p.found = append(p.found, driver.Finding{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy})
}

// name draws the name of an object that is removed in the end.
func (p *probe) name() string {
	key := probeKey()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, key)
	return key
}

// tries and pause are for services that take one write a second for each object.
const (
	tries = 5
	pause = 1100 * time.Millisecond
)

// write is one write without a race. It is repeated only after an answer that shows that the server
// has not looked at it.
func (p *probe) write(ctx context.Context, key string, c condition, text string) (v driver.Version, refused bool, err error) {
	for range tries {
		v, err = p.s.put(ctx, key, c, []byte(text))
		if err == nil || !look(err).busy() {
			break
		}
		if err := wait(ctx, p.pause); err != nil {
			return "", false, err
		}
	}
	switch {
	case err == nil:
		return v, false, nil
	case look(err).conflict():
		return "", true, nil
	}
	return "", false, p.s.explain(writing, err)
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clean removes the objects of the inspection, as far as it may.
func (p *probe) clean(ctx context.Context) {
	ctx, cancel := object.Cleaning(ctx)
	defer cancel()
	errs := make([]error, len(p.made))
	lanes(len(p.made), race.Contenders, func(i int) { errs[i] = p.s.remove(ctx, p.made[i]) })
	stayed := 0
	for _, err := range errs {
		if err != nil {
			stayed++
		}
	}
	if stayed == 0 {
		return
	}
	p.find(driver.Advice, "s3:DeleteObject", fmt.Sprintf("%d objects of this inspection could not be removed: %v", stayed,
		errors.Join(errs...)), fmt.Sprintf(`grant the right for %s%s*, or remove them: aws s3 rm s3://%s/%s --recursive `+
		`--exclude "*" --include "*%s*"`, p.s.prefix, object.ProbePrefix, p.s.bucket, p.s.prefix, object.ProbePrefix))
}

func (s *Store) remove(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)}, once)
	return err
}

// lanes calls do for 0 to n-1, at most width at a time, and waits for all.
func lanes(n, width int, do func(i int)) {
	var all sync.WaitGroup
	free := make(chan struct{}, width)
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	all.Wait()
}

const (
	// races of each kind: all but 0.2 % of the servers that let a second writer win in one of five
	// are found, though four races decide nothing
	races   = 32
	abreast = 4 // races at a time
)

// contest is one object for which writers race.
type contest struct {
	key    string
	before driver.Version
	race.Result
}

// atRaces first creates objects, then replaces them.
func (p *probe) atRaces(ctx context.Context) error {
	all := make([]contest, p.races)
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
func settled(all []contest) []contest {
	var again []contest
	for _, r := range all {
		if r.Version != "" {
			again = append(again, contest{key: r.key, before: r.Version})
		}
	}
	return again
}

// hold repeats, for a while, races in which the server was too busy to look at any write.
func (p *probe) hold(ctx context.Context, setting, what string, all []contest) error {
	for range tries {
		lanes(len(all), abreast, func(i int) {
			if !all[i].held() {
				p.start(ctx, &all[i])
			}
		})
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if !slices.ContainsFunc(all, contest.busy) {
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
func (r contest) held() bool { return r.Winners+r.Refused > 0 || r.Failed != nil && !r.busy() }

func (r contest) busy() bool { return r.Winners+r.Refused == 0 && look(r.Failed).busy() }

// start runs a race.
func (p *probe) start(ctx context.Context, r *contest) {
	r.Result = race.Run(ctx, race.Cell{
		Read: func(ctx context.Context) (driver.Entry, error) { return p.s.get(ctx, r.key) },
		Write: func(ctx context.Context, prev driver.Version, value []byte) (driver.Version, error) {
			v, err := p.s.put(ctx, r.key, condition{prev, p.bare}, value)
			if err != nil && look(err).conflict() {
				err = fmt.Errorf("%w: %w", driver.ErrConflict, err)
			}
			return v, err
		},
	}, r.before)
}

// judge makes at most one finding from all races.
func (p *probe) judge(setting, what string, all []contest) {
	var doubled, lost, undecided int
	var failed error
	for _, r := range all {
		switch {
		case r.Winners > 1:
			doubled++
		case r.Overwritten:
			lost++
		case r.Winners == 0:
			undecided++
			failed = r.Failed
		}
		if r.Stale {
			p.late()
		}
	}
	held := fmt.Sprintf("of %d races in which %d writers try to %s", len(all), race.Contenders, what)
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
