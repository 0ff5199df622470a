package object_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

// server keeps the object of the check.
type server struct {
	mu              sync.Mutex
	exists          bool
	ignoresCreation bool
	ignoresVersions bool  // on an object that exists
	refuses         error // all writes; nil: those whose conditions are not met
	takes           time.Duration
	writes          int
}

func (s *server) put(ctx context.Context, _ string, prev driver.Version, _ []byte) (driver.Version, error) {
	s.mu.Lock()
	s.writes++
	takes := s.takes
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	heeds := prev == "" && s.exists && !s.ignoresCreation || prev != "" && !(s.exists && s.ignoresVersions)
	switch {
	case s.refuses != nil:
		return "", s.refuses
	case heeds:
		return "", driver.ErrConflict
	}
	s.exists = true
	return "1", nil
}

func (s *server) read(context.Context, string) (driver.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.exists {
		return driver.Entry{Version: "1"}, nil
	}
	return driver.Entry{}, nil
}

// set changes the server.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// conditions returns the check of a store that has written nothing yet.
func (s *server) conditions() *object.Conditions {
	return object.NewConditions(object.Check{
		Put: s.put, Read: s.read, Never: "0", Create: "If-None-Match", Replace: "If-Match", Version: "ETag", Remedy: "use another server",
		CreateRemedy: " without versions", Place: func(key string) string { return key },
	})
}

// TestUnfit: each condition is checked on an object that exists.
func TestUnfit(t *testing.T) {
	for _, s := range []*server{{ignoresCreation: true}, {ignoresVersions: true}, {exists: true, ignoresVersions: true}} {
		c := s.conditions()
		for range 3 {
			if err := c.Require(t.Context(), "folder/key"); !errors.Is(err, driver.ErrUnfit) {
				t.Errorf("server %+v: %v", s, err)
			}
			s.exists = false // an operator deletes the object
		}
	}
}

// TestLaterUnfit: a server ignores conditions after the check, as one in another release does.
// When CheckRights finds that, writes stop.
func TestLaterUnfit(t *testing.T) {
	s := new(server)
	c := s.conditions()
	for range 2 {
		if err := c.Require(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
	}
	if s.writes != 3 {
		t.Errorf("%d writes", s.writes)
	}
	s.ignoresVersions = true
	if err := c.Violate(t.Context(), "key"); !errors.Is(err, driver.ErrUnfit) {
		t.Errorf("another version was replaced: %v", err)
	}
	if err := c.Require(t.Context(), "key"); !errors.Is(err, driver.ErrUnfit) {
		t.Errorf("a write passes: %v", err)
	}
	s.ignoresVersions = false
	if err := c.Require(t.Context(), "key"); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

// TestUnfitDuringACheck: the result of Violate counts for the check under way, too.
func TestUnfitDuringACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{exists: true, ignoresVersions: true}
		c := s.conditions()
		var all sync.WaitGroup
		s.takes = time.Second
		all.Go(func() {
			if err := c.Require(t.Context(), "key"); !errors.Is(err, driver.ErrUnfit) {
				t.Errorf("the check: %v", err)
			}
		})
		synctest.Wait()
		s.set(func() { s.takes = 0 })
		if err := c.Violate(t.Context(), "key"); !errors.Is(err, driver.ErrUnfit) {
			t.Errorf("another version was replaced: %v", err)
		}
		s.set(func() { s.ignoresVersions = false })
		all.Wait()
	})
}

// TestRefusalOfAnotherKind: a server refuses to create an object that does not exist. That shows
// nothing, and neither does the refusal to replace it.
func TestRefusalOfAnotherKind(t *testing.T) {
	s := &server{refuses: driver.ErrConflict, ignoresVersions: true}
	c := s.conditions()
	for range 3 {
		if err := c.Require(t.Context(), "key"); err == nil || errors.Is(err, driver.ErrUnfit) || errors.Is(err, driver.ErrConflict) {
			t.Errorf("without the object: %v", err)
		}
	}
	s.refuses = nil
	if err := c.Require(t.Context(), "key"); !errors.Is(err, driver.ErrUnfit) {
		t.Errorf("the server ignores versions: %v", err)
	}
}

// TestCallsShareACheck, also one that fails: of many elections in a process, not each one asks a
// server that hangs or lacks a right.
func TestCallsShareACheck(t *testing.T) {
	for _, refuses := range []error{nil, driver.ErrDenied} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{takes: 5 * time.Second, refuses: refuses, exists: true}
			c := s.conditions()
			began := time.Now()
			var all sync.WaitGroup
			for i := range 1_000 {
				all.Go(func() {
					if err := c.Require(t.Context(), fmt.Sprint("key", i)); !errors.Is(err, refuses) {
						t.Errorf("call %d: %v", i, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(began); took > 10*time.Second || s.writes > 2 {
				t.Errorf("%d writes in %v", s.writes, took)
			}
		})
	}
}

// TestCheckOfACallThatEnds: its end is not the result of the others. The next one goes on with the
// check.
func TestCheckOfACallThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{takes: 5 * time.Second}
		c := s.conditions()
		var all sync.WaitGroup
		for _, limit := range []time.Duration{8 * time.Second, time.Minute, 2 * time.Second} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				err := c.Require(ctx, "key")
				if took := time.Since(began); limit < time.Minute && (!errors.Is(err, context.DeadlineExceeded) || took != limit) {
					t.Errorf("the call of %v ends after %v: %v", limit, took, err)
				} else if limit == time.Minute && (err != nil || took != 18*time.Second) {
					t.Errorf("the other call ends after %v: %v", took, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
	})
}
