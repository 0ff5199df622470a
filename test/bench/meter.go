package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tenure-go/tenure/test/internal/machine"
)

// meter watches the goroutines of a worker: elections that renew in the same moment need them then and at no other time.
type meter struct {
	once sync.Once

	mu        sync.Mutex
	low, high int // since the last use
}

const (
	metering = 20 * time.Millisecond
	// calm is how long use waits for a moment at rest.
	calm = 10 * time.Second
)

func (m *meter) run() {
	for range time.Tick(metering) {
		m.note(runtime.NumGoroutine())
	}
}

func (m *meter) note(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.low == 0 || n < m.low {
		m.low = n
	}
	m.high = max(m.high, n)
}

// take returns what was seen since the last time.
func (m *meter) take() (low, high int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	low, high = m.low, m.high
	m.low, m.high = 0, 0
	return low, high
}

// use measures at a moment at rest. The first time it starts the meter, so that what it costs is in every measurement.
func (m *meter) use() *usage {
	m.once.Do(func() { go m.run() })
	m.note(runtime.NumGoroutine())
	low, high := m.take()
	for end := time.Now().Add(calm); runtime.NumGoroutine() > low && time.Now().Before(end); {
		time.Sleep(metering)
	}
	cpu := machine.CPU()
	at := machine.Now()
	runtime.GC()
	debug.FreeOSMemory() // a second collection: what the first finds may free more
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return &usage{Goroutines: low, Peak: high, Heap: s.HeapAlloc, Resident: resident(), CPU: cpu, At: at}
}

// resident is what the process has in memory, in bytes, or 0 where that cannot be told.
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
