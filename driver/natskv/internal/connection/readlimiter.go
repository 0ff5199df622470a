package connection

import "context"

// readsAtOnce is how many reads of one store wait for the server's answer at a time. The rest wait
// here, where they cost the server nothing. When the server is slow, all followers want to read,
// and 10,000 reads in its queue would delay the renewals of the leaders. Writes do not wait.
const readsAtOnce = 128

// readLimiter is held by the reads that wait for an answer.
type readLimiter chan struct{}

func newReadLimiter() readLimiter { return make(readLimiter, readsAtOnce) }

func (l readLimiter) acquire(ctx context.Context) (release func(), err error) {
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
