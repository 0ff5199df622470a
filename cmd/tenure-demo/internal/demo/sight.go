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
	nonce  string // new in every write of a holder
	lease  time.Duration
	held   bool
	// address is the published address of the leader.
	address string
}

// sights is the number of pushes that may wait. More are dropped; at worst the least time of a
// failover is then unknown.
const sights = 256

// look turns pushes of the store into entries. Their stamps are about the moments from which
// followers count the lease, since pushes come at once.
func look(ctx context.Context, store driver.Watcher, key string) (<-chan entry, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // to begin to watch
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

// read takes the fields of a sight from a record.
func read(e driver.Entry) *sight {
	r := records.Read(e)
	return &sight{absent: r.Absent, term: r.Term, nonce: r.Nonce, lease: r.Lease, held: r.Held(), address: r.Address}
}
