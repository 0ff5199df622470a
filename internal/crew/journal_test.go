package crew

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

func TestAwait(t *testing.T) {
	failure := errors.New("a report of failure")
	three := func(n int) bool { return n == 3 }
	for _, c := range []struct {
		why  string
		mark int
		then func(j *Journal[int], stop func())
		want error
	}{
		{"it was there before", 2, func(*Journal[int], func()) {}, nil},
		{"it comes later", 3, func(j *Journal[int], _ func()) { j.Add(2); j.Add(4, 3) }, nil},
		{"a process failed", 3, func(j *Journal[int], _ func()) { j.Fail(failure); j.Fail(errors.New("another")) }, failure},
		{"the time is over", 3, func(_ *Journal[int], stop func()) { stop() }, context.Canceled},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var j Journal[int]
				j.Add(3, 1, 3)
				got, err, done := 0, error(nil), false
				go func() {
					got, err = j.Await(ctx, c.mark, "3", three)
					done = true
				}()
				synctest.Wait()
				if done != (c.mark < 3) {
					t.Errorf("done: %t", done)
				}
				c.then(&j, stop)
				synctest.Wait()
				if !done || !errors.Is(err, c.want) || (got == 3) != (c.want == nil) {
					t.Errorf("%t, %d, %v", done, got, err)
				}
				if errors.Is(c.want, failure) && !errors.Is(j.Failed(), failure) {
					t.Error(j.Failed())
				}
			})
		})
	}
}

func TestMarks(t *testing.T) {
	var j Journal[int]
	if _, ok := j.Last(); ok || j.Mark() != 0 {
		t.Error("an empty journal has entries")
	}
	j.Add(1, 2)
	mark := j.Mark()
	j.Add(3)
	if last, ok := j.Last(); !ok || last != 3 || !slices.Equal(j.Since(mark), []int{3}) {
		t.Errorf("%d, %v", last, j.Since(mark))
	}
	before := j.Since(0)
	j.Add(4)
	if _ = append(before, 9); j.Since(3)[0] != 4 {
		t.Error("a caller changed the journal")
	}
}
