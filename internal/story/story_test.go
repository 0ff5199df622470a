package story

import (
	"fmt"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// The memory of earlier terms is bounded.
func TestEarlierTermsAreForgotten(t *testing.T) {
	var s Story
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	for term := uint64(1); term < 100; term++ {
		value := fmt.Sprintf(`{"leaderID":"a","term":%d,"leaseMillis":2000,"nonce":"%d"}`, term, term)
		s.See(driver.Entry{Value: []byte(value)}, now)
		s.Hear(tenure.Event{Time: now, Kind: tenure.EventLeader, Term: term, Leader: tenure.Leader{ID: "a", Term: term}})
	}
	if len(s.signs) > 3 {
		t.Errorf("%d terms are known", len(s.signs))
	}
}

// A push that anybody can have sent shows a renewal at most.
func TestForgedPushesTellOfRenewalsAtMost(t *testing.T) {
	var s Story
	now := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	const held = `{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"%d"}`
	s.See(driver.Entry{Value: fmt.Appendf(nil, held, 1)}, now)
	for value, facts := range map[string]int{
		fmt.Sprintf(held, 2): 1,
		`{"leaderID":"a","term":1,"leaseMillis":2000,"nonce":"3","released":true}`: 0,
		`{"leaderID":"b","term":2,"leaseMillis":2000,"nonce":"4"}`:                 0,
		"": 0, "junk": 0,
	} {
		if got := s.See(driver.Entry{Value: []byte(value), Unverified: true}, now); len(got) != facts {
			t.Errorf("%s tells %+v", value, got)
		}
	}
}
