package planted

import (
	"runtime"
	"sync"
)

// OnEachCore calls f for the numbers below n, as many at a time as there are cores.
func OnEachCore(n int, f func(i int)) {
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range n {
		free <- struct{}{}
		all.Go(func() {
			f(i)
			<-free
		})
	}
	all.Wait()
}
