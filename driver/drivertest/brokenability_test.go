package drivertest

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

func brokenAbilities() []breakage {
	return []breakage{
		{"rights are not checked", []string{"denied client learns that it is denied"}, func(s *store) { s.denied = s.Store }},
		{"no shortest lease", []string{"bounds are of use"}, func(s *store) { s.minLease = 0 }},
		{"a finding without remedy", []string{"findings say what and how"}, func(s *store) { s.findings[0].Remedy = "" }},
		{"refused keys end up elsewhere", []string{"refused keys harm nobody"}, refusedKeysElsewhere},
	}
}

func refusedKeysElsewhere(s *store) {
	last := ""
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if s.CheckKey(key) != nil {
			key = last
		}
		last = key
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}
