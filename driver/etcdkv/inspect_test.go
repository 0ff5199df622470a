package etcdkv

import (
	"testing"

	"github.com/tenure-go/tenure/driver"
)

// TestReleases: those that lose data are unsafe.
func TestReleases(t *testing.T) {
	found := func(severity driver.Severity, _, _ string) []driver.Finding {
		return []driver.Finding{{Severity: severity}}
	}
	for version, want := range map[string]driver.Severity{
		"3.3.27": driver.Unsafe, "3.4.21": driver.Unsafe, "3.4.23": driver.Advice, "3.5.0": driver.Unsafe,
		"3.5.0-rc.1": driver.Unsafe, "3.5.2": driver.Unsafe, "3.5.5": driver.Unsafe, "3.5.6": 0, "3.5.21": 0, "3.6.0": 0, "3.7.3": 0, "": 0,
	} {
		var got driver.Severity
		for _, f := range atRelease(version, found) {
			got = f.Severity
		}
		if got != want {
			t.Errorf("%q: %v, want %v", version, got, want)
		}
	}
}
