// Package machine holds the calls of the operating system that measurements need: one clock for all
// processes of the machine, and what they use. It works on Linux. Elsewhere it compiles, and
// Supported is false.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// Meter measures the usage of this process. It counts the goroutines all the time, because a
// process that does many things at the same moment needs most of them only then.
type Meter struct {
	once sync.Once

	mu        sync.Mutex
	low, high int // of goroutines since the last use
}

// Usage is the usage of a process.
type Usage struct {
	Goroutines int    // at rest
	Peak       int    // most goroutines since the last use
	Heap       uint64 // bytes, after a collection
	Resident   uint64 // bytes of the process, after free memory was returned
	CPU        time.Duration
	At         int64 // when CPU was read
}

// Minus returns the difference to the usage before something started. CPU and At are the difference
// to a time when everything was running.
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

// Share returns the processor time as a percentage of the elapsed time.
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

// Take returns the lowest and highest number of goroutines since its last call.
func (m *Meter) Take() (low, high int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	low, high = m.low, m.high
	m.low, m.high = 0, 0
	return low, high
}

// Use measures when the process is at rest. The first call starts the count of goroutines, so every
// measurement contains the cost of counting.
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
	all, _, _ := Of(os.Getpid())
	u.Heap, u.Resident = s.HeapAlloc, all.Resident
	return u
}
