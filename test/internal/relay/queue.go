package relay

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// queue delivers bytes in their order, late where that was asked for. Bytes that cannot be
// delivered are lost: a side that is gone has its own way to be noticed.
type queue struct {
	to   io.Writer
	gone <-chan struct{} // delivery is given up
	busy sync.WaitGroup

	mu      sync.Mutex
	waiting []parcel
}

type parcel struct {
	data []byte
	due  time.Time
}

func newQueue(to io.Writer, gone <-chan struct{}) *queue { return &queue{to: to, gone: gone} }

// put delivers bytes without a delay at once, unless something late is before them.
func (q *queue) put(data []byte, late time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if late == 0 && len(q.waiting) == 0 {
		_, _ = q.to.Write(data)
		return
	}
	q.waiting = append(q.waiting, parcel{bytes.Clone(data), time.Now().Add(late)})
	if len(q.waiting) == 1 {
		q.busy.Go(q.deliver)
	}
}

// deliver ends when nothing waits any more.
func (q *queue) deliver() {
	for more := true; more; {
		next := q.first()
		select {
		case <-time.After(time.Until(next.due)):
		case <-q.gone:
			return
		}
		_, _ = q.to.Write(next.data)
		more = q.remove()
	}
}

func (q *queue) first() parcel {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting[0]
}

// remove takes off the delivered bytes, and reports whether there is more.
func (q *queue) remove() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = q.waiting[1:]
	return len(q.waiting) > 0
}

// end waits until everything has been delivered or given up.
func (q *queue) end() { q.busy.Wait() }
