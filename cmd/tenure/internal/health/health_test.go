package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var errIll = errors.New("ill")

const interval = 5 * time.Second

// changes plays results, one each interval, and returns when the decision changed: +N or -N for the
// number of the check.
func changes(t *testing.T, results string) (seen []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		c := &Checker{
			Interval: interval,
			Check: func(ctx context.Context) error {
				n++
				switch results[n-1] {
				case 'p':
					return nil
				case 'h': // hangs until the time-out
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return errIll
			},
			Changed: func(cause error) {
				sign := "+"
				if cause != nil {
					sign = "-"
				}
				seen = append(seen, fmt.Sprint(sign, n))
			},
		}
		go c.Run(ctx)
		time.Sleep(time.Duration(len(results))*interval - 1)
		cancel()
		synctest.Wait()
	})
	return seen
}

func TestHysteresis(t *testing.T) {
	for why, c := range map[string]struct {
		results string
		want    []string
	}{
		"the first pass decides alone":              {"p", []string{"+1"}},
		"failures from the start are reported once": {"ffffffff", []string{"-3"}},
		"the first pass may come late":              {"ffp", []string{"+3"}},
		"and after it was told":                     {"ffffp", []string{"-3", "+5"}},
		"two failures change nothing":               {"pffpffp", []string{"+1"}},
		"three failures do":                         {"pfff", []string{"+1", "-4"}},
		"one pass is not enough later":              {"pfffpfp", []string{"+1", "-4"}},
		"two are":                                   {"pfffpp", []string{"+1", "-4", "+6"}},
		"a check that times out counts as such":     {"phhhpp", []string{"+1", "-4", "+6"}},
	} {
		t.Run(why, func(t *testing.T) {
			if got := changes(t, c.results); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestCheckThatNeverEnds: it counts as failed at each interval, and no other one is begun beside
// it. When it ends after all, its result does not count.
func TestCheckThatNeverEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		begun, running, failed := 0, 0, 0
		var fit []bool
		c := &Checker{
			Interval: interval,
			Check: func(context.Context) error {
				begun++
				if running++; running > 1 {
					t.Error("two checks run at a time")
				}
				defer func() { running-- }()
				if begun == 2 {
					<-release
				}
				return nil
			},
			Changed: func(cause error) { fit = append(fit, cause == nil) },
			Failed:  func(error) { failed++ },
		}
		go c.Run(ctx)
		time.Sleep(5*interval - 1)
		synctest.Wait()
		if begun != 2 || failed != 3 || !slices.Equal(fit, []bool{true, false}) {
			t.Errorf("%d begun, %d failed, %v", begun, failed, fit)
		}
		close(release)
		time.Sleep(interval)
		synctest.Wait()
		if begun != 3 || len(fit) != 2 {
			t.Errorf("the late result counts: %d begun, %v", begun, fit)
		}
		cancel()
		synctest.Wait()
	})
}

// TestRunEnds although its check does not.
func TestRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		c := &Checker{Interval: interval, Changed: func(error) { t.Error("changed") }, Check: func(context.Context) error {
			<-release
			return nil
		}}
		time.AfterFunc(time.Second, cancel)
		begun := time.Now()
		c.Run(ctx)
		if took := time.Since(begun); took != time.Second+endWithin {
			t.Errorf("it took %v", took)
		}
		close(release)
	})
}
