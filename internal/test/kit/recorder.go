package kit

import (
	"fmt"
	"runtime"
	"sync"
)

// Recorder collects the reports of a case, so that a store can fail the kit and the test of the kit
// pass.
type Recorder struct {
	mu       sync.Mutex
	Failures []string
	Skipped  string
	Logs     int
}

// Record runs a case in a goroutine that it may end.
func Record(run func(r *Recorder)) *Recorder {
	r := &Recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(r)
	}()
	<-done
	return r
}

// Helper does nothing.
func (r *Recorder) Helper() {}

// Logf counts.
func (r *Recorder) Logf(string, ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Logs++
}

// Errorf notes a failure.
func (r *Recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Failures = append(r.Failures, fmt.Sprintf(format, args...))
}

// Fatalf notes a failure and ends the case.
func (r *Recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf notes why the case is skipped, and ends it.
func (r *Recorder) Skipf(format string, args ...any) {
	r.mu.Lock()
	r.Skipped = fmt.Sprintf(format, args...)
	r.mu.Unlock()
	runtime.Goexit()
}
