package dynamoplace

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/fault"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]Place{
		"dynamodb://elections":                                {Table: "elections"},
		"dynamodb://My_Table.1?region=eu-central-1":           {Table: "My_Table.1", Region: "eu-central-1"},
		"dynamodb://elections?endpoint=http://127.0.0.1:8000": {Table: "elections", Endpoint: "http://127.0.0.1:8000"},
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
		"dynamodb://":                                      "names no table",
		"dynamodb://ab":                                    "3 to 255",
		"dynamodb://elections/prefix":                      "path behind the table",
		"dynamodb://host:8000":                             "host where the table",
		"dynamodb://s3cret:s3cret@elections":               "has credentials",
		"dynamodb://elections#x":                           "fragment",
		"dynamodb://elections?region=":                     "region is empty",
		"dynamodb://elections?secret-key=s3cret":           "unknown",
		"dynamodb://elections?endpoint=h:1":                "URL of a server",
		"dynamodb://elections?endpoint=http://u:s3cret@h/": "has credentials",
	} {
		_, err := parse(raw)
		var f *fault.Error
		if !errors.As(err, &f) || f.Hint == "" || !strings.Contains(err.Error(), want) || strings.Contains(fmt.Sprint(err, f.Hint), "s3cret") {
			t.Errorf("%s: got %v", raw, err)
		}
	}
}

// TestPrices: only DynamoDB itself bills.
func TestPrices(t *testing.T) {
	if p := (&Place{Table: "elections"}).Prices(); p.Write <= p.Read || p.Read <= 0 || p.List == "" {
		t.Errorf("got %+v", p)
	}
	if p := (&Place{Table: "elections", Endpoint: "http://h"}).Prices(); p.Write != 0 {
		t.Errorf("another server: got %+v", p)
	}
}
