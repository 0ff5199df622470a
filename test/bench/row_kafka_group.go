package main

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var logGroupRow = row{
	name: "kafka-group",
	title: "Kafka: a consumer group nominates, sessions of 15 s and heartbeats every 3 s, as with goNELI's defaults, lease 5 s; in a quick run sessions " +
		"of 2 s and a lease of 1 s; three candidates",
	note: "A graceful stop is measured as in row stop and a crash as in row crash. With precedence whoever is not the nominee leaves it " +
		"a lease of time; nominee only is goNELI's meaning. The group is at rest before each",
	measure: logGroup,
}

func logGroup(b *bench) ([]measure, error) {
	s := scene{members: 3, elections: 1, lease: 5 * time.Second, session: 15 * time.Second}
	if b.quick {
		s.lease, s.session = logLease, groupSession
	}
	return several(b, 3, func(i int) ([]measure, error) {
		own := s
		own.only = i > 0
		switch i {
		case 0:
			return b.groupCrashes(own, "precedence")
		case 1:
			return b.groupCrashes(own, "nominee only")
		}
		d, err := b.groupHandovers(own)
		return []measure{{what: "nominee only: release sent to next leader", value: d.String(), others: "goNELI 142 ms to close"}}, err
	})
}

func (b *bench) groupCrashes(s scene, what string) ([]measure, error) {
	crashes, err := b.groupFailovers(s)
	var late, total figures.Dist
	for _, f := range crashes {
		late, total = append(late, f.late), append(total, f.total)
	}
	return []measure{
		{what: what + ": elected before the lease ended", value: fmt.Sprintf("%d of %d", early(late), len(late)), bound: "0",
			verdict: figures.Safe(early(late) == 0)},
		{what: what + ": crash to next leader", value: total.String(), others: "goNELI 13.6 s median"},
	}, err
}

// rest is how long a group takes to hear of a member.
func (s scene) rest() time.Duration { return s.session/5 + 3*settle }

func (b *bench) groupFailovers(s scene) ([]failover, error) {
	return parallel(b.pick(1, 3), func(i int) ([]failover, error) {
		own := s
		own.name = fmt.Sprintf("nominate%d-%t", i, s.only)
		c, err := b.logStage(own)
		defer c.dismiss()
		if err != nil {
			return nil, err
		}
		if _, err := c.enthrone(); err != nil {
			return nil, err
		}
		c.role.Spread = 0
		var found []failover
		for range b.pick(1, 5) {
			b.sleep(s.rest())
			f, err := c.crash()
			if err != nil {
				return nil, err
			}
			found = append(found, f)
		}
		return found, nil
	})
}

func (b *bench) groupHandovers(s scene) (figures.Dist, error) {
	s.name = "leave"
	c, err := b.logStage(s)
	defer c.dismiss()
	if err != nil {
		return nil, err
	}
	if _, err := c.enthrone(); err != nil {
		return nil, err
	}
	c.role.Spread, c.ready = 0, s.rest()
	b.sleep(c.ready)
	return c.stops(b.pick(3, 50))
}
