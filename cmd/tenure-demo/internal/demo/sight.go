package demo

import (
	"context"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/stamp"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/records"
)

// sight is the election's record as the store showed it.
type sight struct {
	absent bool // deleted
	term   uint64
	nonce  string // fresh in every write of a holder's
	lease  time.Duration
	held   bool
	// address is the published address of the leader.
	address string
}

// sights is how many pushes may wait. More are dropped, and cost a failover its least time at
// worst.
const sights = 256

// look turns pushes of the store into entries. They come as soon as the store has them, so their
// stamps are, but for the way, the moments from which followers count the lease.
func look(ctx context.Context, store driver.Watcher, key string) (<-chan entry, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // for setting it up
	defer cancel()
	seen := make(chan entry, sights)
	stop, err := store.Watch(ctx, key, func(e driver.Entry) {
		select {
		case seen <- entry{at: stamp.Now(), sight: read(e)}:
		default:
		}
	})
	return seen, stop, err
}

// read takes the few fields that matter here.
func read(e driver.Entry) *sight {
	r := records.Read(e)
	return &sight{absent: r.Absent, term: r.Term, nonce: r.Nonce, lease: r.Lease, held: r.Held(), address: r.Address}
}
