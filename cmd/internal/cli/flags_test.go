package cli_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/cli"
	"github.com/tenure-go/tenure/driver/memory"
)

func TestInFlagsNamesEachFlag(t *testing.T) {
	_, err := tenure.New(memory.New(), "", tenure.Config{
		ID: strings.Repeat("x", 300), Lease: time.Millisecond, StopWithin: 2 * time.Hour, FinishWithin: 48 * time.Hour, Priority: 1e9,
	})
	text := cli.Flags{}.InFlags(err).Error()
	for _, flag := range []string{"--election", "--id", "--lease", "--stop-within", "--finish-within", "--priority"} {
		if !strings.Contains(text, flag) {
			t.Errorf("%s is not named in:\n%s", flag, text)
		}
	}
	if other := errors.New("ID and Lease"); !errors.Is(cli.Flags{}.InFlags(other), other) {
		t.Error("an error that is not about the configuration has changed")
	}
	if (cli.Flags{}).InFlags(nil) != nil {
		t.Error("nothing wrong is an error")
	}
}
