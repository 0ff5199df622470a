// Package machine holds the calls of the operating system that measurements need: one clock for all
// processes of the machine, and what they use. It works on Linux. Elsewhere it compiles, and
// Supported is false.
package machine

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
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

// Processes returns the numbers of all processes. Like all of this file, it needs /proc.
func Processes() (pids []int, err error) {
	dirs, err := os.ReadDir("/proc")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(dir.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Stat returns the fields that describe a process, after its number and its name: first its state,
// then its parent. There are none if the process is gone.
func Stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	name := bytes.LastIndexByte(text, ')') // its end; the name may have spaces
	return strings.Fields(string(text[name+1:]))
}

// Parent returns the parent of a process.
func Parent(pid int) int {
	if fields := Stat(pid); len(fields) > 1 {
		parent, _ := strconv.Atoi(fields[1])
		return parent
	}
	return 0
}

// Lives reports whether a process has not ended. A zombie has ended.
func Lives(pid int) bool {
	fields := Stat(pid)
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// Memory is the memory of a process in bytes. Pages that several processes share count in part in
// Proportional, and in full in Resident.
type Memory struct{ Resident, Proportional, Anonymous uint64 }

// Of returns the memory of a process, and the processor time that it has used.
func Of(pid int) (m Memory, cpu time.Duration, err error) {
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return m, 0, err
	}
	of := map[string]*uint64{"Rss": &m.Resident, "Pss": &m.Proportional, "Anonymous": &m.Anonymous}
	for line := range strings.Lines(string(rollup)) {
		var kilobytes uint64
		name, value, _ := strings.Cut(line, ":")
		if _, err := fmt.Sscanf(value, "%d kB", &kilobytes); err == nil && of[name] != nil {
			*of[name] = kilobytes << 10
		}
	}
	fields := Stat(pid)
	if len(fields) < 13 {
		return m, 0, fmt.Errorf("/proc shows %d fields of process %d", len(fields), pid)
	}
	for _, ticks := range fields[11:13] { // user and system time
		n, err := strconv.ParseInt(ticks, 10, 64)
		if err != nil {
			return m, 0, err
		}
		cpu += time.Duration(n) * 10 * time.Millisecond // whatever unit the kernel uses
	}
	return m, cpu, nil
}
