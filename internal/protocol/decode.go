package protocol

import (
	"errors"
	"hash/fnv"
	"strconv"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// Decode turns an entry of a store into a cell. Its term is not judged yet: see Credible.
func Decode(e driver.Entry) Cell {
	c := Cell{Version: e.Version, Floor: e.Floor, Ceiling: e.Ceiling, Pristine: e.Pristine, Era: e.Era, Unproven: e.Unproven, Unverified: e.Unverified}
	if e.Absent() {
		c.Problem = e.Notice
		return c
	}
	c.doubt = e.Notice
	r, err := record.Decode(e.Value)
	var broken *record.BrokenError
	var foreign *record.ForeignError
	switch {
	case err == nil:
		c.Kind, c.Record = Valid, r
	case errors.As(err, &broken):
		c.Kind, c.Problem, c.Record.Nonce = Malformed, broken.Reason, digest(e.Value)
		c.Record.Lease, c.Record.Term = broken.Lease, broken.Term
	default:
		c.Kind, c.Problem, c.Record.Nonce = Foreign, err, digest(e.Value)
		if errors.As(err, &foreign) {
			c.Problem = foreign.Reason
		}
		if e.Notice != nil { // the store knows more
			c.Problem = e.Notice
		}
	}
	return c
}

// digest identifies bytes that are not a record, as a nonce identifies a record.
func digest(b []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(b)
	return strconv.FormatUint(h.Sum64(), 16)
}

// Fault returns the fault of a Foreign or Malformed cell, or nil. It wraps ErrForeign or
// ErrMalformed.
func (c *Cell) Fault() error {
	switch c.Kind {
	case Foreign:
		return Because(ErrForeign, c.Problem)
	case Malformed:
		return Because(ErrMalformed, c.Problem)
	}
	return nil
}

// Notice returns why the store needs an operator (driver.Entry.Notice), or nil.
func (c *Cell) Notice() error { return c.doubt }

// SetNotice sets the result of Notice. It is for readers of traces.
func (c *Cell) SetNotice(err error) { c.doubt = err }
