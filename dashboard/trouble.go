package dashboard

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
)

// trouble is why a store does not answer: in plain words, and the whole error.
type trouble struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

const noAnswer = "the store does not answer"

// plainly are the reasons in plain words, the most telling first.
var plainly = []struct {
	err    error
	reason string
}{
	{driver.ErrDenied, "the store refuses access: a right or a password is missing, wrong or revoked"},
	{driver.ErrUnfit, "the store is unfit for elections: see its settings"},
	{driver.ErrPoolBusy, "all connections of the dashboard to the store are in use"},
	{driver.ErrConnecting, "there is no connection to the store"},
	{driver.ErrNoAnswer, noAnswer},
	{context.DeadlineExceeded, noAnswer},
}

// alarmOf describes an alarm.
func alarmOf(err error) trouble {
	if errors.Is(err, tenure.ErrForeign) {
		return trouble{"the key holds bytes that are not an election record", err.Error()}
	}
	return trouble{Reason: err.Error()}
}

// troubleOf describes an error of a store.
func troubleOf(err error) trouble {
	t := trouble{"the store cannot be reached or refuses requests", err.Error()}
	for _, p := range plainly {
		if errors.Is(err, p.err) {
			t.Reason = p.reason
			break
		}
	}
	return t
}
