package natskv

import "context"

// readsAtOnce is how many reads of one store the server is asked for at a time. The rest wait here, where it costs the server
// nothing: when it is slow all followers want to read, and what stood in its queue behind 10,000 of them would be the
// renewals of the leaders. Writes do not wait.
const readsAtOnce = 128

// queue waits for a turn to read. Leave must be called after it, unless it fails.
func (b *bucket) queue(ctx context.Context) error {
	select {
	case b.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *bucket) leave() { <-b.turns }
