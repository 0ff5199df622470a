package ticks

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/driver"
)

var update = flag.Bool("update", false, "write new golden files")

func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02T15:04:05", "2026-11-28T"+clock)
	if err != nil {
		panic(err)
	}
	return t
}

// TestGolden: the bytes of the format are a promise. Existing files never change.
func TestGolden(t *testing.T) {
	for name, s := range map[string]State{
		"draft": {Seq: 1, Nonce: "a1", Draft: true, At: at("02:00:00"), ID: "db-1", Token: 7, Plan: "0 3 * * * UTC",
			After: at("02:00:00"), Over: at("02:00:35")},
		"full": {Seq: 9, Nonce: "a9", Era: 1 << 63, At: at("05:00:01"), ID: "db-2", Token: 8, Plan: "0 * * * * UTC",
			After: at("05:00:00"), Over: at("01:00:00"), Missed: Missed{Late: 3, Overlap: 1, Last: at("01:30:00")},
			Ticks: []Tick{
				{Planned: at("02:00:00"), State: Finished, Token: 7, Lead: "l7", ID: "db-1", Began: at("02:00:00"), Ended: at("02:10:00"), Attempt: 1},
				{Planned: at("03:00:00"), State: Failed, Token: 7, Lead: "l7", ID: "db-1", Began: at("03:00:00"), Ended: at("03:00:09"), Attempt: 2, Code: 3, Error: "exit status 3"},
				{Planned: at("04:00:00"), State: Lost, Token: 7, Lead: "l7", ID: "db-1", Began: at("04:00:00"), Ended: at("05:00:01"), Attempt: 1},
				{Planned: at("05:00:00"), State: Started, Token: 8, Lead: "l8", ID: "db-2", Began: at("05:00:01"), Attempt: 1},
			}},
		"success": {Seq: 3, Nonce: "a3", At: at("02:10:00"), ID: "db-1", Token: 7, Plan: "0 * * * * UTC",
			After: at("02:00:00"), Over: at("01:00:00"), Next: at("03:00:00"),
			Success: Success{Ended: at("02:10:00"), Since: at("02:00:00")},
			Day:     Day{Hour: at("02:00:00"), Finished: []int{1, 0, 1}, Missed: []int{2}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.encode()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %s\nwant %s, %v", got, want, err)
			}
			back, err := Decode(want)
			if err != nil || fmt.Sprint(back) != fmt.Sprint(s) {
				t.Errorf("decoded %v, want %v, %v", back, s, err)
			}
		})
	}
}

func TestForeignBytes(t *testing.T) {
	for reason, value := range map[string]string{
		"text":              "hello",
		"a record":          `{"leader_id":"db-1","term":3,"lease_ms":15000}`,
		"a later format":    `{"format":"tenure-ticks/2","seq":1}`,
		"a field of a type": `{"format":"tenure-ticks/1","seq":"one"}`,
	} {
		if _, err := Decode([]byte(value)); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestRoom: a state always fits into a cell. Each tick that is dropped is over (J10), and the one
// that runs stays.
func TestRoom(t *testing.T) {
	s := State{ID: strings.Repeat("i", 250), Plan: "* * * * * UTC"}
	for i := range 40 {
		s.put(Tick{Planned: at("00:00:00").Add(time.Duration(i) * time.Minute), State: Failed, ID: s.ID, Error: strings.Repeat("e", maxError)})
	}
	s.Ticks[0].State = Started
	value, err := s.encode()
	if err != nil || len(value) > driver.MaxValue || len(s.Ticks) > maxTicks || len(s.Ticks) < 5 {
		t.Fatalf("%d bytes, %d ticks, %v", len(value), len(s.Ticks), err)
	}
	if s.Ticks[0].State != Started || !s.Over.Equal(s.Ticks[1].Planned.Add(-time.Minute)) {
		t.Errorf("over is %v, and the ticks are %v", s.Over, s.Ticks)
	}
}
