package drivertest

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure/driver"
)

func brokenAbsences() []breakage {
	return []breakage{
		{"absence is an error", []string{"absent key reads as an entry", "create from absent applies"}, absenceIsError},
		{"absence has no version that fits", []string{
			"create from absent applies", "deleted cell is absent and can be claimed again",
			"purged cell is absent and can be claimed again",
		}, absenceFitsNothing},
		{"absence fits everything", []string{
			"no old version fits a deleted cell", "no old version fits a purged cell", "pristine ends with the first write",
			"no old version fits a recreated cell",
		}, absenceFitsAll},
		{"eras are missing", []string{"recreated store has another history"}, noEras},
		{"the era stays", []string{"recreated store has another history"}, oneEra},
		{"a write over a marker is lost", []string{"empty version over a delete marker loses nothing"}, losesOverMarker},
		{"floor is that of the cell", []string{"floor survives a delete", "floor survives a purge"}, floorOfCell},
		{"floor counts too little", []string{
			"floor is never below a term", "watch pushes a change as a read shows it",
		}, floorTooLow},
		{"purged is pristine", []string{"pristine ends with the first write"}, purgedIsPristine},
	}
}

func absenceIsError(s *store) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		if err == nil && e.Absent() {
			err = errors.New("not found")
		}
		return e, err
	}
}

func absenceFitsNothing(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err != nil || e.Absent() {
			return "", errors.Join(err, driver.ErrConflict)
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func absenceFitsAll(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err == nil && e.Absent() {
			prev = e.Version
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

func losesOverMarker(s *store) {
	s.swap = func(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
		if e, err := s.Store.Read(ctx, key); err == nil && e.Absent() && prev == "" {
			return "lost", nil
		}
		return s.Store.CompareAndSwap(ctx, key, prev, value)
	}
}

// altersReads changes the floor or other fields of an entry, pushed or read.
func altersReads(s *store, change func(key string, e *driver.Entry)) {
	s.read = func(ctx context.Context, key string) (driver.Entry, error) {
		e, err := s.Store.Read(ctx, key)
		change(key, &e)
		return e, err
	}
	s.watch = func(ctx context.Context, key string, see func(driver.Entry)) (func(), error) {
		return s.Store.Watch(ctx, key, func(e driver.Entry) {
			change(key, &e)
			see(e)
		})
	}
}

func floorOfCell(s *store) {
	altersReads(s, func(_ string, e *driver.Entry) {
		if e.Absent() {
			e.Floor = 1
		}
	})
}

func floorTooLow(s *store) {
	altersReads(s, func(_ string, e *driver.Entry) { e.Floor = e.Floor/2 + 1 })
}

func purgedIsPristine(s *store) {
	altersReads(s, func(_ string, e *driver.Entry) { e.Pristine = e.Version == "" || e.Pristine })
}

func noEras(s *store) { altersReads(s, func(_ string, e *driver.Entry) { e.Era = 0 }) }

func oneEra(s *store) { altersReads(s, func(_ string, e *driver.Entry) { e.Era = 7 }) }
