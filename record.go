package tenure

import (
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/internal/protocol"
)

// recordInView returns the record that this member saw last. It runs under the lock.
func (m *runner) recordInView() admin.Record {
	c, since := m.machine.InView()
	r := admin.Record{
		Kind: kindOf(&c), Problem: c.Fault(), LeaderID: c.Record.LeaderID, Term: c.Record.Term, Lease: c.Record.Lease,
		Seen: since, Updated: c.Record.LastUpdated, Priority: c.Record.Priority,
	}
	if q := c.Record.Request; q != nil && q.Term == c.Record.Term {
		r.Request = &admin.Request{To: q.To, By: q.By, Offer: q.Offer}
	}
	return r
}

func kindOf(c *protocol.Cell) admin.Kind {
	switch {
	case c.Kind == protocol.Absent:
		return admin.Absent
	case c.Kind == protocol.Foreign:
		return admin.Foreign
	case c.Kind == protocol.Malformed:
		return admin.Malformed
	case c.Record.Released:
		return admin.Released
	case c.Record.LeaderID == "":
		return admin.Vacant
	}
	return admin.Held
}
