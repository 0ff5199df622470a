package jobs

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// The oldest files go, but not those of others, and not the one that was just written.
func TestPrune(t *testing.T) {
	k := kept{dir: t.TempDir(), most: 2}
	var file string
	for _, hour := range []int{5, 3, 4, 1} { // the last one is late
		var err error
		file, err = k.open("a", time.Date(2026, 11, 29, hour, 0, 0, 0, time.UTC))
		must.OK(t, err)
		must.OK(t, os.WriteFile(file, nil, 0o600))
	}
	other := filepath.Join(k.dir, "a", "20261129T000000Z.log.gz")
	must.OK(t, os.WriteFile(other, nil, 0o600))
	must.OK(t, k.prune(file))
	left, err := filepath.Glob(filepath.Join(k.dir, "a", "*"))
	must.OK(t, err)
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := []string{"20261129T000000Z.log.gz", "20261129T010000Z.log", "20261129T050000Z.log"}; !slices.Equal(left, want) {
		t.Errorf("there are %v", left)
	}
}

// broken is an output that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no reader") }

func TestPassOn(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	var out strings.Builder
	passOn(&out, io.NopCloser(strings.NewReader("a\n\nb\n"+long+"y\nend")), "job: ")
	if want := "job: a\njob: \njob: b\njob: " + long + "\njob: y\njob: end\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
	in := strings.NewReader("a\nb\n")
	passOn(broken{}, io.NopCloser(in), "job: ")
	if in.Len() > 0 {
		t.Error("the command would hang")
	}
}
