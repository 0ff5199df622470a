//go:build integration

package s3

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/test/internal/s3d/s3d"
)

// TestMain lets more tests run in parallel than there are processors, because the tests mostly
// wait.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// servers are programs of other projects, which are fetched and compiled when they are first
// needed.
var servers = flag.String("servers", "",
	"the `kinds` of servers to test on, as a list with commas (default all, with -short versity,stub)")

// wanted returns the kinds that the flags select.
func wanted(t *testing.T) []s3d.Kind {
	t.Helper()
	switch {
	case *servers == "" && testing.Short():
		return []s3d.Kind{s3d.Versity, s3d.Stub}
	case *servers == "":
		return s3d.Kinds()
	}
	var kinds []s3d.Kind
	for _, name := range strings.Split(*servers, ",") {
		k, err := s3d.KindOf(name)
		if err != nil {
			t.Fatalf("-servers: %v", err)
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// eachReal runs a test on each of these servers that is wanted, one after another.
func eachReal(t *testing.T, kinds []s3d.Kind, run func(*testing.T, *s3d.Server)) {
	t.Helper()
	chosen := wanted(t)
	kinds = slices.DeleteFunc(kinds, func(k s3d.Kind) bool { return !slices.Contains(chosen, k) })
	if len(kinds) == 0 {
		t.Skip("none of its servers is chosen")
	}
	for _, k := range kinds {
		t.Run(string(k), func(t *testing.T) { run(t, s3d.Start(t, k)) })
	}
}
