package drivertest

import (
	"context"
	"maps"
	"slices"
	"sync"

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
		{"no shortest lease", []string{"bounds are usable"}, func(s *store) { s.minLease = 0 }},
		{"a list in no order", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return append(keys, "a") }
		}},
		{"a list with a key twice", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return append(keys, keys[len(keys)-1]) }
		}},
		{"a list without the last key", []string{listsKeys}, func(s *store) {
			s.list = func(keys []string) []string { return keys[:max(len(keys)-1, 0)] }
		}},
		{"a list with keys that were deleted", []string{listsKeys}, listsAllEver},
		{"candidates of all keys answer", []string{answerWhenAsked}, func(s *store) {
			s.present = func([][]byte) [][]byte { all, _ := s.Store.Candidates(context.Background(), ""); return all }
		}},
		{"only one candidate answers", []string{answerWhenAsked}, func(s *store) {
			s.present = func(all [][]byte) [][]byte { return all[:min(len(all), 1)] }
		}},
		{"candidates answer when they have gone", []string{answerWhenAsked}, func(s *store) { s.stays = true }},
		{"a finding without remedy", []string{"findings are complete"}, func(s *store) { s.findings[0].Remedy = "" }},
		{"refused keys end up elsewhere", []string{"refused keys change no other cell"}, refusedKeysElsewhere},
	}
}

const answerWhenAsked = "candidates answer when they are asked"

const listsKeys = "the list has the keys with a value"

func listsAllEver(s *store) {
	var mu sync.Mutex
	ever := map[string]bool{}
	s.list = func(keys []string) []string {
		mu.Lock()
		defer mu.Unlock()
		for _, key := range keys {
			ever[key] = true
		}
		return slices.Sorted(maps.Keys(ever))
	}
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		mu.Lock()
		defer mu.Unlock()
		ever[key] = true
		return s.Store.CompareAndSwap(ctx, key, prev, value)
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
