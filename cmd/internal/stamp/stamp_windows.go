package stamp

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel    = windows.NewLazySystemDLL("kernel32.dll")
	counter   = kernel.NewProc("QueryPerformanceCounter")
	frequency = sync.OnceValue(func() int64 { return ask(kernel.NewProc("QueryPerformanceFrequency")) })
)

// Now reads the performance counter.
func Now() Time {
	n, perSecond := ask(counter), frequency()
	const second = 1_000_000_000
	return Time(n/perSecond*second + n%perSecond*second/perSecond)
}

// ask panics if there is no such counter; all supported systems have it.
func ask(p *windows.LazyProc) (n int64) {
	if ok, _, err := p.Call(uintptr(unsafe.Pointer(&n))); ok == 0 {
		panic("tenure: " + p.Name + ": " + err.Error())
	}
	return n
}
