package sqlstore

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/driver"
)

// WithNotifications makes each write notify PostgreSQL's listeners of the new row (NOTIFY), in the
// same statement. Package pgxstore listens for that. Without listeners it costs nothing, but
// PostgreSQL commits such writes one at a time. Set it in all members if any uses pgxstore: a
// listener notices a write without a notification late, by a read after it has heard nothing for a
// while. New returns an error with any other dialect.
func WithNotifications() Option {
	return func(set *settings) { set.notify = true }
}

// ChannelQuery returns the query for the name of the channel of this table's notifications in
// PostgreSQL. Its answer is one row of one text. The name differs between eras, and between
// databases.
func (s *Store) ChannelQuery() string {
	return "SELECT " + postgresChannel + " FROM (" + s.text.era + ") AS now (era)"
}

var errNotification = errors.New("not a notification of sqlstore")

// ParseNotification returns the key in a notification, and the state of the cell according to it.
// The state is Unverified, because every user that may connect to the database can send
// notifications. An error means that only the key can be used.
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
