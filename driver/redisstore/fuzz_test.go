package redisstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/seal"
)

// FuzzNews: a message of the channel counts only if its seal is that of its key and value, and then
// it shows the state that the read script would return.
func FuzzNews(f *testing.F) {
	stamp := seal.New("billing", []byte("a\nb"))
	f.Add("billing\n" + stamp + "\n12\nera\na\nb")
	f.Add("billing")
	f.Add("billing\n" + stamp + "\n-1\n\n")
	f.Fuzz(func(t *testing.T, message string) {
		key, e, err := parseNews(message)
		if !strings.HasPrefix(message, key) || strings.Contains(key, "\n") {
			t.Fatalf("the key of %q is %q", message, key)
		}
		if err != nil {
			return
		}
		v := parseVersion(e.Version)
		if !e.Unverified || len(e.Value) > driver.MaxValue || v.version() != e.Version || !seal.Unbroken(v.stamp, key, e.Value) {
			t.Errorf("%q is read as %+v", message, e)
		}
	})
}

// FuzzCell: no answer of a script makes the parser panic. A cell that exists has a value and a
// version, and its bound is no higher than its floor and the clock.
func FuzzCell(f *testing.F) {
	stamp := seal.New("billing", []byte("{}"))
	f.Add(strings.Join([]string{"era", "12", "1", stamp, "{}", "7", "era"}, "\x00"))
	f.Add(strings.Join([]string{"", "", "0", "", "", "", ""}, "\x00"))
	f.Fuzz(func(t *testing.T, text string) {
		answer := strings.Split(text, "\x00")
		c, err := parseCell(answer)
		if err != nil {
			return
		}
		e := c.entry("billing")
		if c.exists != (e.Version != "") || c.exists && len(e.Value) == 0 || e.Floor > max(c.floor, c.clock) {
			t.Errorf("%q is read as %+v", answer, e)
		}
		if c.exists && !e.Unproven && !seal.Unbroken(c.version, "billing", e.Value) {
			t.Errorf("%q is proven without its seal", answer)
		}
		if slices.Contains(answer[3:5], "") && c.exists {
			t.Errorf("%q lacks a field and exists", answer)
		}
	})
}
