package guard

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestKeepSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, calls := time.Now(), []time.Duration{}
		stop := keepSmall(time.Second, func() { calls = append(calls, time.Since(began)) })
		time.Sleep(2*giveBackEvery + 2*time.Second)
		stop()
		time.Sleep(2 * giveBackEvery)
		if len(calls) != 3 || calls[0] != time.Second || calls[2] != time.Second+2*giveBackEvery {
			t.Errorf("called at %v", calls)
		}
	})
}
