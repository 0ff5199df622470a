package kit

import (
	"fmt"
	"runtime"
	"sync"
)

// Recorder is a Reporter that collects the reports of a case. With it, the tests of a kit check
// that the kit fails a wrong store.
type Recorder struct {
	mu       sync.Mutex
	Failures []string
	Skipped  string
	Logs     int
}

// Record runs a case in a goroutine of its own, which Fatalf and Skipf end.
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

// Logf counts the logs.
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
