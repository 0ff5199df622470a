//go:build integration

package chaos

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/faults"
)

// TestEverythingAtOnce is an election with requests and answers that are lost, late and doubled,
// connections that are cut, and a server that is killed. The seed decides the faults. The outcome
// also depends on the machine.
func TestEverythingAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("the soak does it")
	}
	t.Parallel()
	seed := rand.Uint64()
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		f := newField(t, 600*time.Millisecond)
		n := seed
		all := f.join(3, func(s driver.Store) driver.Store {
			n++
			return faults.New(s, n, faults.Plan{Chances: faults.Chances{
				faults.LoseAnswer: 0.05, faults.LoseRequest: 0.05, faults.LandLate: 0.05, faults.HangAfter: 0.03,
				faults.DelayAfter: 0.05, faults.Replay: 0.05, faults.Drop: 0.1, faults.Delay: 0.1, faults.Double: 0.1,
			}, MaxDelay: 300 * time.Millisecond})
		})
		f.leader(0)
		f.trouble(rand.New(rand.NewPCG(seed, 0)), all, 6*time.Second)
		token := f.latest()
		f.leader(0).by.leave() // the others go on
		f.leader(token)
	})
}

// trouble causes faults for a while, and ends all of them.
func (f *field) trouble(rng *rand.Rand, all []*candidate, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		c := all[rng.IntN(len(all))]
		pause := time.Duration(rng.Int64N(int64(2 * f.lease)))
		switch rng.IntN(5) {
		case 0:
			c.relay.Blackhole()
		case 1:
			c.relay.Mute()
		case 2:
			c.relay.Hold()
			time.Sleep(pause)
			c.relay.Release()
		case 3:
			c.relay.Heal()
		case 4:
			f.server.Kill()
			time.Sleep(pause / 4)
			must(f, f.server.Start())
		}
		time.Sleep(pause)
	}
	for _, c := range all {
		c.relay.Heal()
	}
}
