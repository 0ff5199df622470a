package azurecontainer

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/azureblob"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]Place{
		"azblob://myaccount/elections":     {Account: "myaccount", Container: "elections"},
		"azblob://myaccount/elections/a/b": {Account: "myaccount", Container: "elections", Prefix: "a/b"},
		"azblob://myaccount/elections?endpoint=http://127.0.0.1:10000/myaccount&credentials-file=/run/azure": {
			Account: "myaccount", Container: "elections", Endpoint: "http://127.0.0.1:10000/myaccount", CredentialsFile: "/run/azure",
		},
	} {
		got, err := parse(raw)
		if err != nil || *got != want || got.String() != raw {
			t.Errorf("%s: got %+v, %v", raw, got, err)
		}
	}
}

// TestRefused: a wrong URL is refused with a hint, and no error shows a credential.
func TestRefused(t *testing.T) {
	for raw, want := range map[string]string{
		"azblob://":                                                   "names no storage account",
		"azblob://myaccount":                                          "names no container",
		"azblob://ab/elections":                                       "3 to 24",
		"azblob://myaccount/Elections":                                "3 to 63",
		"azblob://myaccount/a--b":                                     "3 to 63",
		"azblob://a.blob.core.windows.net/elections":                  "host where the account",
		"azblob://s3cret:s3cret@myaccount/elections":                  "has credentials",
		"azblob://myaccount/elections#x":                              "fragment",
		"azblob://myaccount/elections/a//b":                           "would be resolved away",
		"azblob://myaccount/elections?sv=1&sig=s3cret":                "unknown",
		"azblob://myaccount/elections?account-key=s3cret":             "unknown",
		"azblob://myaccount/elections?endpoint=h:1":                   "URL of a server",
		"azblob://myaccount/elections?endpoint=http://h?sig%3Ds3cret": "has credentials",
	} {
		_, err := parse(raw)
		var f *fault.Error
		if !errors.As(err, &f) || f.Hint == "" || !strings.Contains(err.Error(), want) || strings.Contains(fmt.Sprint(err, f.Hint), "s3cret") {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

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
