package trace

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/protocol"
)

// Log writes the lines of one or more machines. Lines wait in memory, so a slow Write delays no
// machine: a goroutine writes them, which ends when none is left. Each Write gets whole lines. The
// trace ends at the first error of Write, and when more than the given bytes wait.
type Log struct {
	to   io.Writer
	most int

	mu     sync.Mutex
	queue  []byte
	over   bool
	drains chan struct{} // closed when the queue is empty; nil: it is
}

// Waiting is the usual limit for the bytes that wait.
const Waiting = 4 << 20

// NewLog returns a Log that writes to an io.Writer; nil if that is nil.
func NewLog(to io.Writer, most int) *Log {
	if to == nil {
		return nil
	}
	return &Log{to: to, most: most}
}

func (l *Log) add(line *Line) {
	text, err := json.Marshal(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if err != nil || len(l.queue)+len(text) > l.most {
		l.over = true
		text = []byte(`{"in":"` + Cut + `","by":"` + line.By + `"}`)
	}
	l.queue = append(append(l.queue, text...), '\n')
	if l.drains == nil {
		l.drains = make(chan struct{})
		go l.drain()
	}
}

func (l *Log) drain() {
	for {
		l.mu.Lock()
		lines := l.queue
		l.queue = nil
		if len(lines) == 0 {
			close(l.drains)
			l.drains = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if _, err := l.to.Write(lines); err != nil {
			l.mu.Lock()
			l.over, l.queue = true, nil
			l.mu.Unlock()
		}
	}
}

// Flush waits until all lines are written, for a bounded time.
func (l *Log) Flush(within time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	drains := l.drains
	l.mu.Unlock()
	if drains == nil {
		return
	}
	select {
	case <-drains:
	case <-time.After(within):
	}
}

// recorder adds the lines of one machine.
type recorder struct {
	log     *Log
	by      string
	draws   []uint64 // in this call
	pending bool     // an input was recorded since the last Next
	asked   bool     // a question was recorded since the last input of another kind
}

func (r *recorder) line(l *Line) {
	l.By, l.Rand = r.by, r.draws
	r.pending = l.In != Next
	r.asked = l.In == Question || r.asked && l.In == Next
	r.log.add(l)
}

// settings returns a copy of the settings. The recorder notes each random number that it draws.
func (r *recorder) settings(cfg *protocol.Config) *protocol.Config {
	c, random := *cfg, cfg.Rand
	c.Rand = func() uint64 {
		x := random()
		r.draws = append(r.draws, x)
		return x
	}
	return &c
}
