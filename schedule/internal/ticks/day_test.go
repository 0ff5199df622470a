package ticks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestDay compares a Day with the ticks themselves, in any order that clocks and failovers allow.
func TestDay(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var d Day
		now, counted := at("00:00:00"), map[string]map[time.Time]int{}
		for range 300 {
			now = now.Add(time.Duration(random.IntN(90)) * time.Minute)
			planned := now.Add(-time.Duration(random.IntN(180)) * time.Minute)
			name := []string{"finished", "failed", "lost", "missed"}[random.IntN(4)]
			d.add(map[string]*[]int{"finished": &d.Finished, "failed": &d.Failed, "lost": &d.Lost, "missed": &d.Missed}[name], planned)
			if counted[name] == nil {
				counted[name] = map[time.Time]int{}
			}
			counted[name][planned.Truncate(time.Hour)]++
		}
		for name, list := range map[string][]int{"finished": d.Finished, "failed": d.Failed, "lost": d.Lost, "missed": d.Missed} {
			want := make([]int, dayHours)
			for i := range want {
				want[i] = counted[name][d.Hour.Add(time.Duration(i+1-dayHours)*time.Hour)]
			}
			if got := append(make([]int, dayHours-len(list)), list...); !slices.Equal(got, want) {
				t.Fatalf("seed %d, %s: got %v, want %v", seed, name, got, want)
			}
		}
	}
}

// TestDayOfAWrongClock: ticks of a clock that was a month ahead, or a pause, take nothing along.
func TestDayOfAWrongClock(t *testing.T) {
	var d Day
	for _, planned := range []time.Time{at("02:00:00"), at("02:10:00").AddDate(0, 1, 0), at("03:00:00")} {
		d.add(&d.Finished, planned)
	}
	if want := (Day{Hour: at("03:00:00"), Finished: []int{1}}); fmt.Sprint(d) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", d, want)
	}
}
