package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// Parse reads the lines of a trace. It drops a last line that is not whole: its process ended.
func Parse(from io.Reader) ([]Line, error) {
	var lines []Line
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadBytes('\n')
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return nil, err
		}
		var l Line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(lines)+1, err)
		}
		if l.In == Start && l.Format != Format {
			return nil, fmt.Errorf("line %d: format %d; this build reads format %d", len(lines)+1, l.Format, Format)
		}
		lines = append(lines, l)
	}
}

// Replay gives the recorded inputs to machines of this build, and compares their decisions with the
// recorded ones. It returns an error that names the first line that differs.
func Replay(lines []Line) error {
	members := map[string]*replayed{}
	for i := range lines {
		l := &lines[i]
		p := members[l.By]
		switch {
		case l.In == Start:
			p = &replayed{}
			p.m = protocol.New(p.settings(l.Settings), l.By)
			members[l.By] = p
			continue
		case l.In == Cut:
			delete(members, l.By)
			continue
		case p == nil:
			return fmt.Errorf("line %d: %s has not started", i+1, l.By)
		}
		p.rand = slices.Clone(l.Rand)
		if err := p.play(l); err != nil {
			return fmt.Errorf("line %d: %s: %w", i+1, l.By, err)
		}
		if p.short || len(p.rand) > 0 {
			return fmt.Errorf("line %d: %s: this build draws another number of random numbers", i+1, l.By)
		}
	}
	return nil
}

// replayed is one member of a trace.
type replayed struct {
	m     *protocol.Machine
	rand  []uint64 // those of the present line that are left
	short bool     // too few were recorded
}

func (p *replayed) settings(s *Settings) *protocol.Config {
	if s == nil {
		s = &Settings{}
	}
	cfg := protocol.Config(*s)
	cfg.Rand = func() uint64 {
		if len(p.rand) == 0 {
			p.short = true
			return 0
		}
		x := p.rand[0]
		p.rand = p.rand[1:]
		return x
	}
	return &cfg
}

// play makes the call of a line. For Next it compares the decisions.
func (p *replayed) play(l *Line) error {
	m, now := p.m, clock.Reading{Instant: clock.Instant{Mono: l.At[0], Raw: l.At[1], Boot: l.At[2]}, Wall: l.Wall}
	switch l.In {
	case Reconfigured:
		m.Reconfigure(p.settings(l.Settings))
	case Campaign:
		m.Campaign(now, l.Delay)
	case Withdraw:
		m.Withdraw(now)
	case Asked:
		m.Ask(now, errorOf(l.Error))
	case HandOver:
		m.HandOver(now, l.To, l.From)
	case Finish:
		m.Finish(now, l.To, l.Again, l.Delay)
	case Abandon:
		m.Abandon(now)
	case Observe:
		m.Observe(l.On)
	case Watching:
		m.Watching(l.On)
	case Tick:
		m.Tick(now)
	case Read, Written, Pushed:
		return p.answer(now, l)
	case Nominated:
		m.Nominate(now, l.On)
	case Eligible:
		m.SetEligible(now, l.On)
	case Question:
		if left, _ := m.Remaining(now, l.Term); left != l.Left {
			return fmt.Errorf("this build may act for %v more, and not for %v", left, l.Left)
		}
	case Next:
		todo := m.Next(now)
		return compare(decisions(&todo), l)
	default:
		return fmt.Errorf("unknown line %q", l.In)
	}
	return nil
}

func (p *replayed) answer(now clock.Reading, l *Line) error {
	out := protocol.Outcome(max(slices.Index(outcomes, l.Outcome), 0))
	if l.In == Written {
		p.m.WriteDone(now, l.Op, l.Version, out, errorOf(l.Error))
		return nil
	}
	if l.Cell == nil {
		return fmt.Errorf("there is no cell")
	}
	c, err := l.Cell.cell()
	if err != nil {
		return err
	}
	if l.In == Pushed {
		p.m.Seen(now, c)
	} else {
		p.m.ReadDone(now, l.Op, c, out, errorOf(l.Error))
	}
	return nil
}

func (c *Cell) cell() (protocol.Cell, error) {
	kind := slices.Index(kinds, c.Kind)
	if kind < 0 {
		return protocol.Cell{}, fmt.Errorf("unknown kind of cell %q", c.Kind)
	}
	out := protocol.Cell{
		Kind: protocol.Kind(kind), Version: c.Version, Pristine: c.Pristine, Unproven: c.Unproven, Unverified: c.Unverified,
		Floor: c.Floor, Ceiling: c.Ceiling, Era: c.Era, Problem: errorOf(c.Problem),
	}
	out.SetNotice(errorOf(c.Notice))
	if c.Record != nil {
		out.Record = record.Record(*c.Record)
	}
	return out, nil
}

// compare reports the first difference between the decisions of this build and those of a line.
func compare(got, want *Line) error {
	for _, part := range []struct {
		name      string
		got, want any
	}{
		{"sends", got.Send, want.Send}, {"says", got.Changes, want.Changes}, {"waits for", got.Wake, want.Wake},
	} {
		is, _ := json.Marshal(part.got)
		was, _ := json.Marshal(part.want)
		if string(is) != string(was) {
			return fmt.Errorf("this build %s %s, and not %s", part.name, is, was)
		}
	}
	return nil
}
