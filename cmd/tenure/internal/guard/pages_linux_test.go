package guard

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// TestGiveBackPages: the program goes on as before, with less memory.
func TestGiveBackPages(t *testing.T) {
	before := shared(t)
	giveBackPages()
	if after := shared(t); after >= before {
		t.Errorf("%d pages of files are held after, %d before", after, before)
	}
}

// shared returns the number of file pages in this process.
func shared(t *testing.T) int {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	must.OK(t, err)
	n, err := strconv.Atoi(string(bytes.Fields(statm)[2]))
	must.OK(t, err)
	return n
}

func TestClean(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 fe:00 1001 /bin/tenure
Rss:                8148 kB
Anonymous:             0 kB
Swap:                   0 kB
VmFlags: rd ex mr mw me
00500000-00600000 r--p 013cc000 fe:00 1001 /bin/tenure
Anonymous:            12 kB
Swap:                   0 kB
00600000-00700000 r--p 013cc000 fe:00 1001 /bin/tenure
Anonymous:             0 kB
Swap:                   0 kB
00700000-00800000 rw-p 0280a000 fe:00 1001 /bin/tenure
Anonymous:             0 kB
Swap:                   0 kB
00800000-00900000 r--p 013cc000 fe:00 1001 /bin/tenure
Anonymous:             0 kB
Swap:                 12 kB
00900000-00a00000 r--p 013cc000 fe:00 1001 /bin/tenure
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 7 /lib/libc
Anonymous:             0 kB
Swap:                   0 kB
7f0000000000-7f0000001000 r--p 00000000 00:00 0
Anonymous:             0 kB
Swap:                   0 kB
`
	want := []addresses{{0x400000, 0x500000}, {0x600000, 0x700000}}
	if got := clean([]byte(smaps), "/bin/tenure"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}
