package drivertest

import (
	"context"

	"github.com/tenure-go/tenure/driver"
)

const writesNothing = "asking for the right to write writes nothing"

func brokenAbilities() []breakage {
	return []breakage{
		{"rights are not checked", []string{"denied client learns that it is denied"}, func(s *store) { s.denied = s.Store }},
		{"rights are found out by a write", []string{writesNothing}, func(s *store) {
			s.rights = func(ctx context.Context, key string) error {
				e, err := s.Store.Read(ctx, key)
				if err == nil {
					_, err = s.Store.CompareAndSwap(ctx, key, e.Version, []byte("may I?"))
				}
				return err
			}
		}},
		{"rights are never missing", []string{writesNothing}, func(s *store) {
			s.denied = &store{rights: func(context.Context, string) error { return nil }}
		}},
		{"rights are always missing", []string{writesNothing}, func(s *store) {
			s.rights = func(context.Context, string) error { return driver.ErrDenied }
		}},
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
