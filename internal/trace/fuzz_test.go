package trace_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/internal/trace/rules"
)

// FuzzTrace: no trace makes the replay or the checker of the rules panic, and both read the same
// lines.
func FuzzTrace(f *testing.F) {
	for _, text := range election(f) {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"in":"start","by":"a","format":1}` + "\n" + `{"in":"campaign","by":"a"}` + "\n" + `{"in":"next","by":"a"}` + "\n"))
	f.Add([]byte(`{"in":"next","by":"a","changes":[{"what":"elected","term":1}]}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		lines, err := trace.Parse(bytes.NewReader(text))
		if err != nil {
			return
		}
		if n := bytes.Count(text, []byte("\n")); len(lines) != n {
			t.Errorf("%d of %d lines are read", len(lines), n)
		}
		_ = trace.Replay(lines)
		_ = rules.Check(map[string][]byte{"a": text, "b": text}, time.Second)
	})
}
