package reread_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/driver/reread"
)

func TestTheLastGoodValueStays(t *testing.T) {
	var (
		value = "a"
		fault error
		said  []string
	)
	read := func(context.Context) (string, error) { return value, fault }
	report := func(err error) { said = append(said, err.Error()) }
	s := reread.New(value, read, report)
	for _, step := range []struct {
		why, value string
		fault      error
		want       string
		reports    int
	}{
		{"unchanged", "a", nil, "a", 0},
		{"replaced", "b", nil, "b", 0},
		{"gone", "", errors.New("no such file"), "b", 1},
		{"gone for longer", "", errors.New("no such file"), "b", 1},
		{"expired", "c", errors.New("it is 12:00:00"), "b", 2},
		{"expired for longer", "c", errors.New("it is 12:00:01"), "b", 2},
		{"half-written", "c", errors.New("no key"), "b", 3},
		{"complete", "c", nil, "c", 3},
		{"gone again", "", errors.New("no such file"), "c", 4},
	} {
		value, fault = step.value, step.fault
		if got := s.Get(t.Context()); got != step.want || len(said) != step.reports {
			t.Errorf("%s: got %q with reports %q, want %q with %d", step.why, got, said, step.want, step.reports)
		}
	}
	if want := []string{"no such file", "it is 12:00:00", "no key", "no such file"}; !slices.Equal(said, want) {
		t.Errorf("reported are %q, want %q", said, want)
	}
}
