package protocol_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// stage plays one timeline: a machine, its clocks, and its operations so far.
type stage struct {
	cfg   protocol.Config
	m     *protocol.Machine
	now   clock.Reading
	rates [3]float64 // local seconds per true second, of Mono, Raw and Boot
	dice  uint64
	todo  protocol.Todo
	op    *protocol.Op // the newest
	given *protocol.Op // the newest that was given up
	own   map[string]record.Record
	names map[string]string // nonces of the machine's writes, as n1, n2, ...
	term  uint64            // the latest that was announced
}

var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// newStage has round figures: a lease of 15 s, renewed each 5 s, with a margin of 400 ms.
func newStage() *stage {
	s := &stage{rates: [3]float64{1, 1, 1}, own: map[string]record.Record{}, names: map[string]string{}}
	s.now.Wall = epoch
	s.cfg = protocol.Config{
		ID: "a", Lease: 15 * time.Second, Renew: 5 * time.Second, Budget: 14600 * time.Millisecond,
		FinishWithin: 10 * time.Second, Poll: 5 * time.Second, PollStable: 15 * time.Second,
		Retry:     []time.Duration{100 * time.Millisecond, time.Second},
		HeadStart: 250 * time.Millisecond, Rand: s.rand,
	}
	return s
}

// rand returns a different number each time. From each, the machine draws half of a splay of one
// second, and half of the highest dither.
func (s *stage) rand() uint64 {
	s.dice++
	return s.dice*uint64(time.Second) + uint64(time.Second/2) + 128
}

func (s *stage) machine() *protocol.Machine {
	if s.m == nil {
		cfg := s.cfg
		s.m = protocol.New(&cfg, "a1")
	}
	return s.m
}

// input carries out one line and returns the lines that the machine answers.
func (s *stage) input(words []string) ([]string, error) {
	if d, ok := strings.CutPrefix(words[0], "+"); ok {
		if err := s.advance(d); err != nil || len(words) == 1 {
			return nil, err
		}
		words = words[1:]
	}
	if words[0] == "config" && s.m == nil {
		return nil, s.configure(words[1:])
	}
	s.machine()
	if words[0] == "may-act" {
		return s.mayAct(words[1:])
	}
	switch words[0] {
	case "reset":
		return s.reset(words[1:])
	case "end-lease":
		return s.endLease(words[1:])
	}
	if words[0] == "reconfigure" {
		err := s.configure(words[1:])
		cfg := s.cfg
		s.m.Reconfigure(&cfg)
		return nil, err
	}
	if quiet, err := s.environment(words); quiet || err != nil {
		return nil, err
	}
	if err := s.tell(words); err != nil {
		return nil, err
	}
	return s.nextActions(), nil
}

func (s *stage) advance(text string) error {
	d, err := time.ParseDuration(text)
	s.now.Mono += time.Duration(float64(d) * s.rates[0])
	s.now.Raw += time.Duration(float64(d) * s.rates[1])
	s.now.Boot += time.Duration(float64(d) * s.rates[2])
	s.now.Wall = s.now.Wall.Add(d)
	return err
}

// environment changes the machine's clocks without notifying it.
func (s *stage) environment(words []string) (bool, error) {
	switch words[0] {
	case "slew":
		return true, s.slew(words[1:])
	case "suspend":
		d, err := time.ParseDuration(words[1])
		s.now.Boot += d
		return true, err
	}
	return false, nil
}

// slew changes CLOCK_MONOTONIC as a time daemon does, and so CLOCK_BOOTTIME.
func (s *stage) slew(words []string) error {
	f, err := strconv.ParseFloat(strings.TrimSuffix(words[0], "%"), 64)
	s.rates[0], s.rates[2] = 1+f/100, 1+f/100
	return err
}

// configure changes the figures, before the first input or, by reconfigure, of the running machine.
func (s *stage) configure(words []string) error {
	fields := map[string]*time.Duration{
		"lease": &s.cfg.Lease, "renew": &s.cfg.Renew, "budget": &s.cfg.Budget, "finish": &s.cfg.FinishWithin,
		"grace": &s.cfg.Grace, "splay": &s.cfg.Splay, "poll": &s.cfg.Poll, "stable": &s.cfg.PollStable,
		"precedence": &s.cfg.Precedence, "stop": &s.cfg.StopWithin,
	}
	for _, w := range words {
		if w == "nominated" || w == "nominee-only" {
			s.cfg.HasNominator, s.cfg.NomineeOnly = true, s.cfg.NomineeOnly || w == "nominee-only"
			continue
		}
		if w == "hearsay" {
			s.cfg.Hearsay = true
			continue
		}
		key, value, _ := strings.Cut(w, "=")
		if n, err := strconv.Atoi(value); err == nil && s.number(key, n) {
			continue
		}
		d, err := time.ParseDuration(value)
		if key == "retry" && err == nil {
			s.cfg.Retry = append([]time.Duration{d}, s.cfg.Retry...)
			continue
		}
		if fields[key] == nil || err != nil {
			return fmt.Errorf("config: %q", w)
		}
		*fields[key] = d
	}
	return nil
}

// number sets a figure that is not a duration.
func (s *stage) number(key string, n int) bool {
	switch key {
	case "priority":
		s.cfg.Priority = n
	case "drift":
		s.cfg.Drift = uint32(n)
	default:
		return false
	}
	return true
}

// tell gives the machine one input.
func (s *stage) tell(words []string) error {
	a, err := parseArgs(words[1:])
	if err != nil {
		return err
	}
	switch words[0] {
	case "campaign":
		s.m.Campaign(s.now, a.delay)
	case "withdraw":
		s.m.Withdraw(s.now)
	case "finish":
		s.m.Finish(s.now, a.text["to"], a.flag["again"], a.delay)
	case "abandon":
		s.m.Abandon(s.now)
	case "ask":
		s.m.Ask(s.now, errors.New("shutdown"))
	case "handover":
		s.m.HandOver(s.now, a.text["to"], a.text["by"])
	case "nominee":
		s.m.Nominate(s.now, a.flag["yes"])
	case "eligible":
		s.m.SetEligible(s.now, a.flag["yes"])
	case "watching":
		s.m.Watching(a.flag["on"])
	case "observe":
		s.m.Observe(a.flag["on"])
	case "tick":
		s.m.Tick(s.now)
	case "nothing":
	case "wake":
		return s.ring()
	default:
		return s.answer(words, a)
	}
	return nil
}

// ring lets the time pass after which the machine asked to be woken.
func (s *stage) ring() error {
	if !s.todo.Timed {
		return errors.New("no timer is set")
	}
	err := s.advance(s.todo.Wake.String())
	s.m.Tick(s.now)
	return err
}

var errStore = errors.New("the store did not say")

// answer gives the machine a store's answer to the operation in flight, an answer to one that was
// given up (late), or a push.
func (s *stage) answer(words []string, a args) error {
	if words[0] == "push" {
		s.m.Seen(s.now, s.cell(a))
		return nil
	}
	op := s.op
	if words[0] == "late" {
		words = words[1:]
		op = s.given
		delete(a.flag, words[0])
	}
	if op == nil || (words[0] == "read" || words[0] == "wrote") && op.Write != (words[0] == "wrote") {
		return errors.New("no such operation")
	}
	if op == s.op {
		s.op = nil
	}
	out := map[string]protocol.Outcome{
		"read": protocol.Applied, "wrote": protocol.Applied, "conflict": protocol.Conflict,
		"unknown": protocol.Unknown, "denied": protocol.Denied,
	}[words[0]]
	err := map[string]error{"unknown": errStore, "denied": errors.New("no rights")}[words[0]]
	switch {
	case out == 0:
		return errors.New("unknown word")
	case op.Write:
		s.m.WriteDone(s.now, op.ID, driver.Version(a.version), out, err)
	default:
		s.m.ReadDone(s.now, op.ID, s.cell(a), out, err)
	}
	return nil
}
