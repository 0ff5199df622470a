package relay

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// queue delivers bytes in their order, with their delay. It drops bytes that it cannot deliver: the
// closed connection shows that to the sender.
type queue struct {
	to   io.Writer
	gone <-chan struct{} // closed when the connection is: nothing is delivered any more
	busy sync.WaitGroup

	mu      sync.Mutex
	waiting []parcel
}

type parcel struct {
	data []byte
	due  time.Time
}

func newQueue(to io.Writer, gone <-chan struct{}) *queue { return &queue{to: to, gone: gone} }

// put delivers bytes at once if they have no delay and no delayed bytes are before them.
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

// deliver delivers waiting bytes until none are left.
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

// remove removes the delivered bytes, and reports whether more are waiting.
func (q *queue) remove() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = q.waiting[1:]
	return len(q.waiting) > 0
}

// end waits until all bytes are delivered or dropped.
func (q *queue) end() { q.busy.Wait() }
