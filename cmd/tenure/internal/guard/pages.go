package guard

import "time"

// giveBackEvery is how often a process gives back what it touched meanwhile: a lost connection, for example, takes many pages
// of the program that nothing needs for days.
const giveBackEvery = time.Minute

// KeepSmall keeps a process small that waits most of the time: it gives memory back after a while, in which the process comes
// to its work, and again and again, until stop is called.
func KeepSmall(after time.Duration) (stop func() bool) { return keepSmall(after, giveBack) }

func keepSmall(after time.Duration, giveBack func()) (stop func() bool) {
	var timer *time.Timer
	timer = time.AfterFunc(giveBackEvery, func() {
		giveBack()
		timer.Reset(giveBackEvery)
	})
	timer.Reset(after)
	return timer.Stop
}
