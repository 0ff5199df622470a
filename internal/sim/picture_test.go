package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPictureMatchesTheDocs(t *testing.T) {
	var b bytes.Buffer
	picture(&b)
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 78 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	file, err := os.ReadFile("../../docs/lease.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(file) != b.String() {
		t.Errorf("docs/lease.txt is another picture; draw it with: go run ./internal/sim -picture > docs/lease.txt\n%s", b.String())
	}
}

// TestPictureShowsTheSafeOrder checks the order of times that the whole protocol relies on.
func TestPictureShowsTheSafeOrder(t *testing.T) {
	f := shoot()
	if len(f.held[0]) != 3 || len(f.seen) != 3 || len(f.held[1]) == 0 || len(f.asked) < 2 {
		t.Fatalf("a held %d leases and b %d; b saw %d writes and asked %d times", len(f.held[0]), len(f.held[1]), len(f.seen), len(f.asked))
	}
	last, since := f.held[0][2], f.seen[2]
	wait := since + f.w.plan.lease
	read, claim := f.asked[len(f.asked)-2], f.asked[len(f.asked)-1]
	moments := []struct {
		name string
		at   int64
	}{
		{"the last renewal is sent", int64(last.sent)}, {"it is seen", int64(since)}, {"the crash", int64(f.crash)},
		{"the deadline", int64(last.deadline)}, {"the lease's end", int64(last.sent + f.w.plan.lease)},
		{"the end of the wait", int64(wait)}, {"the read", int64(read)}, {"the claim", int64(claim)}, {"b leads", int64(f.led)},
	}
	for i := 1; i < len(moments); i++ {
		if moments[i].at < moments[i-1].at {
			t.Errorf("%s comes before %s", moments[i].name, moments[i-1].name)
		}
	}
	if f.held[1][0].sent != claim {
		t.Errorf("b counts from %v and sent its claim at %v", f.held[1][0].sent, claim)
	}
}
