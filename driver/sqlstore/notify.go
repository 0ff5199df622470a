package sqlstore

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/driver"
)

// WithNotifications makes each write notify the listeners of PostgreSQL (NOTIFY) of the new row, in
// the same statement. Package pgxstore listens to them. It costs nothing where nobody listens, but
// PostgreSQL commits such writes one at a time. Without it, the pushes that others rely on are
// missing; they then read after a silence. New returns an error with any other dialect.
func WithNotifications() Option {
	return func(set *settings) { set.notify = true }
}

// ChannelQuery returns the query that names the channel of this table's notifications, one row of
// one text. The name is another in each era. Connections to different databases get different ones.
func (s *Store) ChannelQuery() string {
	return "SELECT " + postgresChannel + " FROM (" + s.text.era + ") AS now (era)"
}

var errNotification = errors.New("not a notification of sqlstore")

// ParseNotification returns the key that a notification names and the state that it says the cell
// has. The state is Unverified, because everybody who may connect to the database can send
// notifications. The key is valid also with an error, which reports that the rest is not.
func ParseNotification(payload string) (key string, e driver.Entry, err error) {
	key, rest, _ := strings.Cut(payload, "\n")
	fields := strings.SplitN(rest, "\n", 4)
	if len(fields) < 4 {
		return key, driver.Entry{}, errNotification
	}
	stamp, wroteIn := fields[0], fields[2]
	floor, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return key, driver.Entry{}, errNotification
	}
	value, err := base64.StdEncoding.DecodeString(fields[3])
	if err != nil || !sealed(stamp, key, value) {
		return key, driver.Entry{}, errNotification
	}
	return key, driver.Entry{
		Value: value, Version: version{stamp, wroteIn}.version(), Floor: floor, Ceiling: latest,
		Era: era(wroteIn), Unverified: true,
	}, nil
}
