package loglimit_test

import (
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/loglimit"
)

// A symptom is counted with its cause. Once the cause is over, it is logged by itself.
func TestSymptomsJoinTheirCause(t *testing.T) {
	var c loglimit.Limiter
	if c.Joins("slow", 0) {
		t.Error("it joins a cause that was never met")
	}
	if n := c.Admit("slow", 0); n != 1 {
		t.Errorf("the first is admitted as %d", n)
	}
	if !c.Joins("slow", time.Second) || !c.Joins("slow", 2*time.Second) {
		t.Error("it joins no cause that goes on")
	}
	if n := c.Admit("slow", 20*time.Second); n != 3 {
		t.Errorf("%d are counted, want 3", n)
	}
	if c.Joins("slow", 2*time.Minute) {
		t.Error("it joins a cause that is over")
	}
}

func TestCausesDifferInMoreThanNumbersAndTheElection(t *testing.T) {
	a := loglimit.Cause(`tenure: election "a": read tcp 127.0.0.1:5: EOF`, "a")
	b := loglimit.Cause(`tenure: election "b": read tcp 127.0.0.1:6: EOF`, "b")
	if a != b || a == loglimit.Cause(`tenure: election "a": write tcp 127.0.0.1:5: EOF`, "a") {
		t.Errorf("%q and %q", a, b)
	}
}
