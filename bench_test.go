package tenure_test

import (
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/memory"
)

// BenchmarkErr measures the check whether a term is still valid.
func BenchmarkErr(b *testing.B) {
	e, err := tenure.New(memory.New(), key, tenure.Config{})
	if err != nil {
		b.Fatal(err)
	}
	term, err := e.Campaign(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if term.Err() != nil {
			b.Fatal(term.Err())
		}
	}
	_ = term.Resign(b.Context())
}
