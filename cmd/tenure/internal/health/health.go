// Package health decides from repeated checks whether a candidate is fit to lead.
package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Numbers of results in a row that change the decision. The first check that passes after the start
// decides alone.
const (
	Rise = 2 // checks that pass
	Fall = 3 // checks that fail
)

// ErrHangs is the result of a check that did not return before the next one was due.
var ErrHangs = errors.New("the check does not end, though it was canceled")

// Checker repeats one check. No two run at a time.
type Checker struct {
	// Check returns nil if the candidate is fit to lead. It must return soon after ctx ends, at the
	// time-out.
	Check func(ctx context.Context) error
	// Interval is the time from the start of one check to that of the next. The time-out of a check
	// is Timeout of it.
	Interval time.Duration
	// Changed is called at each change: cause is nil if the candidate is fit to lead now, or else
	// the last failure. Before the first call the candidate is not fit. If the first checks fail,
	// it is called after Fall of them.
	Changed func(cause error)
	// Failed, if set, is called for each check that fails.
	Failed func(cause error)
}

// Timeout returns the time-out of a check: four fifths of its interval.
func Timeout(interval time.Duration) time.Duration { return interval / 5 * 4 }

// endWithin bounds the wait for a canceled check at the end of Run.
const endWithin = time.Second

// Run checks at once, and then at each interval, until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	every := time.NewTicker(c.Interval)
	defer every.Stop()
	v := verdict{}
	results := make(chan result, 1)
	running, late := false, false // late: the running check was counted as failed
	begin := func() {
		running, late = true, false
		go func() {
			ctx, cancel := context.WithTimeoutCause(ctx, Timeout(c.Interval), fmt.Errorf("no answer within %v", Timeout(c.Interval)))
			defer cancel()
			results <- result{c.Check(ctx)}
		}()
	}
	begin()
	for {
		select {
		case <-ctx.Done():
			if running {
				select {
				case <-results:
				case <-time.After(endWithin):
				}
			}
			return
		case r := <-results:
			running = false
			if !late && ctx.Err() == nil {
				c.take(&v, r.err)
			}
		case <-every.C:
			if running && len(results) == 0 { // a result that waits counts itself
				late = true
				c.take(&v, ErrHangs)
				continue
			}
			if !running {
				begin()
			}
		}
	}
}

// result is that of one check.
type result struct{ err error }

// verdict is the decision, and how many results in a row speak against it.
type verdict struct {
	fit     bool
	ever    bool // it was fit before
	told    bool // Changed was called
	against int
}

func (c *Checker) take(v *verdict, err error) {
	if err != nil && c.Failed != nil {
		c.Failed(err)
	}
	if v.told && v.fit == (err == nil) {
		v.against = 0
		return
	}
	v.against++
	needed := Fall
	if err == nil {
		needed = Rise
		if !v.ever {
			needed = 1
		}
	}
	if v.against < needed {
		return
	}
	v.fit, v.ever, v.told, v.against = err == nil, v.ever || err == nil, true, 0
	c.Changed(err)
}

// HTTP returns a check that passes if url answers with a status of 200 to 299. It follows no
// redirect, uses no proxy, and connects each time.
func HTTP(url string) func(ctx context.Context) error {
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode < 200 || answer.StatusCode > 299 {
			return fmt.Errorf("the answer is %s", answer.Status)
		}
		return nil
	}
}
