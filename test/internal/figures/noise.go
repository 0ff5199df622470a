package figures

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Noise measures how late the machine wakes this process during a measurement. Every wait in an
// election is late by as much. Mostly, other threads have the processor. It sleeps on each
// processor, because one may be busier than the others, or get no time from a hypervisor.
type Noise struct {
	stop chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	late Dist
}

// nap is the time of one sleep.
const nap = 5 * time.Millisecond

// Listen starts a measurement, which End ends.
func Listen() *Noise {
	n := &Noise{stop: make(chan struct{})}
	for _, processor := range processors() {
		n.done.Go(func() { n.run(processor) })
	}
	return n
}

func (n *Noise) run(processor int) {
	defer stay(processor)()
	var late Dist
	for {
		select {
		case <-n.stop:
			n.mu.Lock()
			defer n.mu.Unlock()
			n.late = append(n.late, late...)
			return
		default:
			began := time.Now()
			sleep(nap)
			late = append(late, time.Since(began)-nap)
		}
	}
}

// End ends the measurement and returns the result as a sentence.
func (n *Noise) End() string {
	close(n.stop)
	n.done.Wait()
	return fmt.Sprintf("Meanwhile a timer in an idle process was late by %s (median), %s (p99), %s (max); the load average was %s",
		Show(n.late.Median()), Show(n.late.P99()), Show(n.late.Max()), load())
}

// Worst returns the longest delay on any processor. Call it after End.
func (n *Noise) Worst() time.Duration { return n.late.Max() }

// load returns the load average of the last minute.
func load() string {
	said, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(said), " ")
	return first
}
