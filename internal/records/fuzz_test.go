package records

import (
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// FuzzRead: people see the same leader and term that members see, and no bytes make the reader
// panic.
func FuzzRead(f *testing.F) {
	good, err := record.Encode(record.Record{LeaderID: "a", Term: 7, Lease: 1e9, Incarnation: "i", Seq: 1, Nonce: "n"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":"tenure-ticks/1","ticks":[{"planned":"2026-01-02T03:04:05Z"}]}`))
	f.Add([]byte(`{"leaseMillis":9223372036854775807,"incarnation":"i"}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		shown := Read(driver.Entry{Value: value, Version: "1"})
		if r, err := record.Decode(value); err == nil &&
			(shown.Term != r.Term || shown.Held() != r.Held() || shown.Lease != r.Lease || r.Held() && shown.Leader != r.LeaderID) {
			t.Errorf("%s is shown as %+v", value, shown)
		}
		if shown.Lease < 0 || shown.Lease > record.MaxLease {
			t.Errorf("%s has a lease of %v", value, shown.Lease)
		}
		if _, ok := ReadJob(value); ok && !IsJob(value) {
			t.Errorf("%s is a job and is none", value)
		}
	})
}
