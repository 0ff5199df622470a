package figures

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Noise measures how late this process is woken during a measurement. Every wait in an election is
// late by as much, and only the machine causes it.
type Noise struct {
	stop chan struct{}
	done sync.WaitGroup
	late Dist
}

// nap is how long the watch sleeps at a time.
const nap = 5 * time.Millisecond

// Listen begins a watch, which End ends.
func Listen() *Noise {
	n := &Noise{stop: make(chan struct{})}
	n.done.Go(n.run)
	return n
}

func (n *Noise) run() {
	for {
		began := time.Now()
		select {
		case <-n.stop:
			return
		case <-time.After(nap):
			n.late = append(n.late, time.Since(began)-nap)
		}
	}
}

// End returns the result, as a sentence.
func (n *Noise) End() string {
	close(n.stop)
	n.done.Wait()
	return fmt.Sprintf("Meanwhile a timer in an idle process was late by %s (median), %s (p99), %s (max); the load average was %s",
		Show(n.late.Median()), Show(n.late.P99()), Show(n.late.Max()), load())
}

// Worst is the longest that was heard, after End.
func (n *Noise) Worst() time.Duration { return n.late.Max() }

// load is the average over the last minute.
func load() string {
	said, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(said), " ")
	return first
}
