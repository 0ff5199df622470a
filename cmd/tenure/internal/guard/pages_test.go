//go:build unix

package guard

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestKeepSmallFreesMemoryPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), []time.Duration{}
		freed := 0
		stop := keepSmall(time.Second, func() { freed++ }, func() { calls = append(calls, time.Since(began)) })
		time.Sleep(2*giveBackEvery + 2*time.Second)
		stop()
		time.Sleep(2 * giveBackEvery)
		synctest.Wait()
		if freed != 1 {
			t.Errorf("memory is freed %d times", freed)
		}
		if len(calls) != 3 || calls[0] != time.Second || calls[2] != time.Second+2*giveBackEvery {
			t.Errorf("pages are given back at %v", calls)
		}
	})
}
