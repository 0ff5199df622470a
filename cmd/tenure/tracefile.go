//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/bridge"
)

// traceFile is the file of --trace.
type traceFile struct {
	mu   sync.Mutex
	file *os.File
	left int64 // bytes that it may still grow by
}

const (
	maxTrace   = 256 << 20
	traceFlush = 2 * time.Second // how long the end of this process waits for the last lines
)

// openTrace makes a file for a trace. A file of this name is kept as NAME.1: it may be the trace of
// a process that has crashed. Directories and devices stay where they are.
func openTrace(name string) (*traceFile, error) {
	err := checkTrace(name)
	if err == nil {
		err = os.Rename(name, name+".1")
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return &traceFile{file: f, left: maxTrace}, nil
}

// checkTrace returns an error if what has this name is no file, or if there is none.
func checkTrace(name string) error {
	there, err := os.Lstat(name)
	if err == nil && !there.Mode().IsRegular() {
		return fmt.Errorf("%s is no file: name one that tenure may rename", name)
	}
	return err
}

var errTraceFull = fmt.Errorf("the trace has %d MiB", maxTrace>>20)

// Write appends whole lines, or returns an error if they exceed the limit. Elections may write at
// the same time.
func (t *traceFile) Write(lines []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left -= int64(len(lines)); t.left < 0 {
		return 0, errTraceFull
	}
	return t.file.Write(lines)
}

// end waits for the last lines, for a bounded time, and closes the file.
func (t *traceFile) end(elections []*tenure.Election) {
	for _, e := range elections {
		bridge.FlushTrace(e, traceFlush)
	}
	_ = t.file.Close()
}
