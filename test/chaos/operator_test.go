package chaos

import (
	"testing"
	"time"
)

// TestOperatorForcesFailover with "nats kv del" or a purge: that ends the term, and the next one has a higher token.
func TestOperatorForcesFailover(t *testing.T) {
	for _, c := range []struct {
		name   string
		remove func(f *field) error
	}{
		{"delete", func(f *field) error { return f.kv.Delete(bounded(f), key) }},
		{"purge", func(f *field) error { return f.kv.Purge(bounded(f), key) }},
		{"purge without a marker", func(f *field) error { return purge(bounded(f), f.js, f.kv.Bucket(), key) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newField(t, 800*time.Millisecond)
			f.join(3)
			token := f.leader(0).token
			must(t, c.remove(f))
			f.leader(token)
		})
	}
}
