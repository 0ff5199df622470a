package azurecontainer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/azureblob"
)

// TestExplain: each error has the remedy.
func TestExplain(t *testing.T) {
	a := &Place{Account: "myaccount", Container: "elections"}
	for hint, c := range map[string]struct {
		err     error
		passing bool
	}{
		"--create":        {&azureblob.AnswerError{Status: 404, Code: "ContainerNotFound"}, false},
		"docs/azure.md":   {fmt.Errorf("%w: %w", driver.ErrDenied, &azureblob.AnswerError{Status: 403}), false},
		"lists the store": {driver.ErrUnfit, false},
		"":                {&azureblob.AnswerError{Status: 503, Code: "ServerBusy"}, true},
	} {
		if f := a.Explain(c.err); !strings.Contains(f.Hint, hint) || f.Passing != c.passing {
			t.Errorf("%v: got %v, hint %q", c.err, f, f.Hint)
		}
	}
}

// TestPrices: only Azure itself bills.
func TestPrices(t *testing.T) {
	if p := (&Place{}).Prices(); p.Write <= p.Read || p.Read <= 0 || p.List == "" {
		t.Errorf("got %+v", p)
	}
	if p := (&Place{Endpoint: "http://h"}).Prices(); p.Write != 0 {
		t.Errorf("another server: got %+v", p)
	}
}
