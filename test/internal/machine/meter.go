package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Meter measures the usage of this process. It watches the goroutines all the time, because a
// process that does many things at the same instants needs them then and at no other time.
type Meter struct {
	once sync.Once

	mu        sync.Mutex
	low, high int // since the last use
}

// Usage is the usage of a process.
type Usage struct {
	Goroutines int    // at rest
	Peak       int    // the most since the last use
	Heap       uint64 // bytes, after a collection
	Resident   uint64 // bytes of the process, after free memory was returned
	CPU        time.Duration
	At         int64 // when CPU was read
}

// Minus is the difference to before something started; CPU is that to a time when all was running.
func (u Usage) Minus(before, running Usage) Usage {
	return Usage{
		Goroutines: u.Goroutines - before.Goroutines,
		Peak:       u.Peak - before.Goroutines,
		Heap:       u.Heap - min(u.Heap, before.Heap),
		Resident:   u.Resident - min(u.Resident, before.Resident),
		CPU:        u.CPU - running.CPU,
		At:         u.At - running.At,
	}
}

// Share shows the processor time as a part of the time that has passed.
func (u Usage) Share() string {
	return fmt.Sprintf("%.1f %% of a core", 100*float64(u.CPU)/float64(u.At))
}

const (
	metering = 20 * time.Millisecond
	// calm is how long Use waits for a moment at rest.
	calm = 10 * time.Second
)

func (m *Meter) note(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.low == 0 || n < m.low {
		m.low = n
	}
	m.high = max(m.high, n)
}

// Take returns the fewest and the most goroutines since the last time.
func (m *Meter) Take() (low, high int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	low, high = m.low, m.high
	m.low, m.high = 0, 0
	return low, high
}

// Use measures at a moment at rest. The first time it starts the watch, so that every measurement
// contains the cost of the watch.
func (m *Meter) Use() Usage {
	m.once.Do(func() {
		go func() {
			for range time.Tick(metering) {
				m.note(runtime.NumGoroutine())
			}
		}()
	})
	m.note(runtime.NumGoroutine())
	low, high := m.Take()
	for end := time.Now().Add(calm); runtime.NumGoroutine() > low && time.Now().Before(end); {
		time.Sleep(metering)
	}
	u := Usage{Goroutines: low, Peak: high, CPU: CPU(), At: Now()}
	runtime.GC()
	debug.FreeOSMemory() // a second collection: the finalizers of the first may free more
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	u.Heap, u.Resident = s.HeapAlloc, resident()
	return u
}

// resident returns 0 where the system does not tell.
func resident() uint64 {
	said, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages uint64
	if _, err := fmt.Sscan(string(said), &size, &pages); err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
