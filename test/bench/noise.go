package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// noise watches how late this process is woken while a row is measured. Every wait in an election is late by as much, and
// nobody but the machine is to blame for it.
type noise struct {
	stop chan struct{}
	done sync.WaitGroup
	late dist
}

// nap is how long the watch sleeps at a time.
const nap = 5 * time.Millisecond

func listen() *noise {
	n := &noise{stop: make(chan struct{})}
	n.done.Go(n.run)
	return n
}

func (n *noise) run() {
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

// end returns what was heard.
func (n *noise) end() string {
	close(n.stop)
	n.done.Wait()
	return fmt.Sprintf("Meanwhile a timer in an idle process was late by %s (median), %s (p99), %s (max); the load average was %s",
		show(n.late.median()), show(n.late.p99()), show(n.late.max()), load())
}

// load is the average over the last minute.
func load() string {
	said, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(said), " ")
	return first
}
