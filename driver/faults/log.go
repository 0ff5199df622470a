package faults

import (
	"fmt"
	"strings"
	"time"
)

// logLength bounds the kept events: enough to explain a failure, and few enough for a long run.
const logLength = 1000

// Event is a fault that struck, the landing of a late write, or the beginning or end of a
// partition.
type Event struct {
	At    time.Duration // since New
	Op    Op
	N     uint64 // number of the operation within its kind, from 1; 0 for a partition
	Key   string
	Fault Fault
	Note  string // the outcome of a late write; "partition" or "heal"
	text  string
}

// String returns one line.
func (e Event) String() string {
	switch {
	case e.N == 0:
		return fmt.Sprintf("+%v %s", e.At, e.Note)
	case e.Note == "":
		return fmt.Sprintf("+%v %s", e.At, e.text)
	}
	return fmt.Sprintf("+%v %s: %s", e.At, e.text, e.Note)
}

// log keeps the latest events.
type log struct {
	start   time.Time
	events  []Event
	dropped int
}

func (l *log) add(o operation, note string) {
	if len(l.events) == logLength {
		l.events = l.events[1:]
		l.dropped++
	}
	e := Event{At: time.Since(l.start), Op: o.op, N: o.n, Key: o.key, Fault: o.fault, Note: note, text: o.String()}
	l.events = append(l.events, e)
}

func (c *core) note(o operation, note string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.add(o, note)
}

func (c *core) Log() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Event(nil), c.log.events...)
}

func (c *core) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "faults: seed %d, plan: %v\n", c.seed, c.plan)
	if c.log.dropped > 0 {
		fmt.Fprintf(&b, "(%d earlier events)\n", c.log.dropped)
	}
	for _, e := range c.log.events {
		fmt.Fprintln(&b, e)
	}
	return b.String()
}
