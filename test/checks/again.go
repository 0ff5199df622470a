package main

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"regexp"
	"strings"
)

// outOfTimeCode is the exit code by which a program says that it ran out of time and has seen no
// violation of safety: EX_TEMPFAIL of sysexits.h.
const outOfTimeCode = 75

var (
	// late is what package wait, and the time limit of go test, say.
	late = regexp.MustCompile(`not in time: .*|^panic: test timed out after .*`)
	// unsafe is a word for a violation of safety. A test that says one in passing gets no second
	// run.
	unsafe = regexp.MustCompile(`(?i)two leaders|overlap|violat|data race|older token|linearizable|led at`)
	// fatal is a failure that no second run mends.
	fatal = regexp.MustCompile(`^(panic|fatal error): |^FAIL\t.*\[.* failed\]$`)
)

// outOfTime returns what a failed step waited for in vain, if that is all that failed: each test of
// Go that failed says so, or the program. It returns nothing if there is a sign of another fault.
func outOfTime(output []byte, err error) string {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == outOfTimeCode:
		return "its end"
	case unsafe.Match(output):
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return "its end"
	}
	var first string
	// in is true in the output of a failed test, said if it says something, and excused if that is
	// that it was late.
	in, said, excused := false, false, false
	for line := range strings.Lines(string(output) + "ok\n") {
		line = strings.TrimRight(line, "\n")
		why := late.FindString(line)
		head := strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ")
		ends := strings.HasPrefix(line, "ok") || strings.HasPrefix(line, "FAIL")
		switch {
		case why == "" && fatal.MatchString(line):
			return ""
		case head || ends || strings.HasPrefix(why, "panic"):
			if in && said && !excused {
				return ""
			}
			in, said, excused = !ends, why != "", why != ""
		case line != "":
			said, excused = true, excused || why != ""
		}
		first = cmp.Or(first, why)
	}
	return first
}

// again runs the steps that ran out of time once more, one after another, when all others have
// ended. Nothing else gets a second run. The log of a step then has both.
func (r *runner) again(ctx context.Context, results []result) {
	for i, first := range results {
		if first.late != "" && ctx.Err() == nil {
			results[i] = r.one(ctx, first.step)
			results[i].first = first.late
		}
	}
}

// note returns the outcome for the table.
func (r result) note() string {
	switch {
	case r.first == "" && r.notice != "":
		return r.outcome + ", but " + strings.ReplaceAll(r.notice, "|", "/")
	case r.first == "":
		return r.outcome
	}
	first, _, cut := strings.Cut(r.first, ": the time limit of the tests")
	if !cut && len(first) > 100 {
		first = first[:100]
	}
	return r.outcome + " in a second run, alone; the first: " + strings.ReplaceAll(first, "|", "/")
}
