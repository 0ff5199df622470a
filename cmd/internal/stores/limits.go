package stores

import (
	"context"
	"errors"

	"github.com/tenure-go/tenure/driver"
)

// Limits returns a store that only knows which leases and keys are possible in the place. It calls
// no server, and the bucket, topic or table need not exist. An election made on it detects every
// wrong setting.
func (p Place) Limits() (driver.Store, error) {
	b, err := p.kind().limits()
	if err != nil {
		return nil, p.blame(err)
	}
	return unopened{b}, nil
}

// unopened is a store with known limits that is not open yet.
type unopened struct{ driver.Bounded }

var errUnopened = errors.New("the store has not been opened")

// Read returns an error.
func (unopened) Read(context.Context, string) (driver.Entry, error) {
	return driver.Entry{}, errUnopened
}

// CompareAndSwap returns an error.
func (unopened) CompareAndSwap(context.Context, string, driver.Version, []byte) (driver.Version, error) {
	return "", errUnopened
}
