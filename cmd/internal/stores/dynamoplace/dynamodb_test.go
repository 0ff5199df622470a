package dynamoplace

import "testing"

// TestPrices: only DynamoDB itself bills.
func TestPrices(t *testing.T) {
	if p := (&Place{Table: "elections"}).Prices(); p.Write <= p.Read || p.Read <= 0 || p.List == "" {
		t.Errorf("got %+v", p)
	}
	if p := (&Place{Table: "elections", Endpoint: "http://h"}).Prices(); p.Write != 0 {
		t.Errorf("another server: got %+v", p)
	}
}
