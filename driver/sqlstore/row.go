package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/seal"
)

// row is one row of the table, with the era and the clock of the server from the same statement.
// The fields of the row are null if there is no row.
type row struct {
	value   []byte
	version sql.NullString // the stamp of its last write
	floor   sql.NullInt64
	wroteIn sql.NullString // the era of its last write
	era     string
	clock   int64
	// hides: the server does not show open transactions.
	hides bool
	// pristine: there is no row, nothing was ever written to the table, and the caller vouches for
	// earlier tables.
	pristine bool
	// notice says why there is no row; nil: unknown.
	notice error
}

// untouched is the beginning of the version of an absence in a table to which nothing was ever
// written; the era follows. No row has such a version: see damaged.
const untouched = " "

const (
	// latest is above every term that a candidate takes until the year 2112, when a clock in
	// microseconds reaches it. The floor can be far below such a term where a row was removed and
	// the server's clock is not set. A clock that is not below it is not credible.
	latest = 1 << 52
	// highest leaves 2^40 terms. A floor that is not below it is not credible, and is replaced. A
	// wrong clock may have led to terms and a floor between latest and highest: such a floor counts
	// if the record confirms it.
	highest = 1<<53 - 1<<40
)

// errUntouched is the notice of an absence in a table to which nothing was ever written.
var errUntouched = fmt.Errorf("%w to the table; in a file that is certainly new, "+
	"sqlstore.WithPristine() or ?pristine=true in the URL avoids this wait", driver.ErrUnwritten)

func (r *row) entry(key string) driver.Entry {
	floor, notice := r.bound()
	e := driver.Entry{Floor: floor, Ceiling: latest, Era: era(r.era)}
	if r.pristine {
		e.Version, e.Pristine = driver.Version(untouched+r.era), true
	}
	if !r.version.Valid {
		e.Notice = r.notice
		return e
	}
	e.Value, e.Version, e.Notice = r.value, version{r.version.String, r.era}.version(), notice
	e.Unproven = r.wroteIn.String != r.era || !seal.Unbroken(r.version.String, key, r.value) || notice != nil
	return e
}

// bound returns the larger of the row's floor and the server's clock. If one of them is not
// credible, it returns the other one, and a notice that explains this. If neither is credible, it
// returns the larger one.
func (r *row) bound() (floor uint64, notice error) {
	const text = "%s is not credible: it is %d, and should be a time in microseconds since 1970; %s"
	inRow, clock := r.floor.Int64, r.clock
	switch {
	case inRow >= highest && 0 < clock && clock < latest:
		return uint64(clock), fmt.Errorf(text, "the column floor of the row", inRow, "the next renewal replaces it")
	case clock >= latest && 0 < inRow && inRow < latest:
		return uint64(inRow), fmt.Errorf(text, "the server's clock", clock, "set the clock")
	}
	return uint64(max(inRow, clock, 0)), nil
}

// damaged returns an error if no write can ever name the version of the row.
func (r *row) damaged() error {
	if stamp := r.version; stamp.Valid && (stamp.String == "" || strings.Contains(stamp.String, " ")) {
		return fmt.Errorf("the column version of the row is %.60q, which no write can name: it was edited by hand; "+
			"set it to any other text without spaces, or delete the row", stamp.String)
	}
	return nil
}

// era makes a number of the text that names a history.
func era(text string) uint64 {
	if text == "" {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return max(h.Sum64(), 1)
}

// version is a driver.Version: the stamp of the write that put the state there, and the era in
// which it was read or written.
type version struct{ stamp, era string }

func (v version) version() driver.Version {
	if v.era == "" {
		return driver.Version(v.stamp)
	}
	return driver.Version(v.stamp + " " + v.era)
}

func parseVersion(v driver.Version) version {
	stamp, era, _ := strings.Cut(string(v), " ")
	return version{stamp, era}
}

// arrival is the first state that a Store read of a key since the era changed: the server may be a
// former primary that took over again and lacks later writes. The version is "" if there was no
// row, or if this Store has written the key since.
type arrival struct {
	era     string
	version driver.Version
}

// lastArrival returns nil if the Store does not know the key. A call asks for it before it sends a
// statement.
func (s *Store) lastArrival(key string) *arrival {
	last, _ := s.met.Load(key)
	a, _ := last.(*arrival)
	return a
}

// arrive records an arrival, unless another call has recorded one after last. The answer to that
// call may be the later one.
func (s *Store) arrive(key string, last *arrival, now arrival) {
	if last == nil {
		s.met.LoadOrStore(key, &now)
		return
	}
	s.met.CompareAndSwap(key, last, &now)
}

// arrives reports whether a version that was just read is still that of the arrival.
func (s *Store) arrives(key string, last *arrival, era string, v driver.Version) bool {
	if last != nil && last.era == era {
		return last.version == v && v != ""
	}
	s.arrive(key, last, arrival{era, v})
	return v != ""
}

// table is the name of a table, perhaps with its schema, without quotes.
type table struct{ schema, name string }

func parseTable(text string) (table, error) {
	t := table{name: text}
	if schema, name, found := strings.Cut(text, "."); found {
		t = table{schema, name}
		if schema == "" {
			return table{}, fmt.Errorf("table %q: the schema before the dot is empty", text)
		}
	}
	switch {
	case t.name == "":
		return table{}, fmt.Errorf("table %q: the name is empty", text)
	case strings.Contains(t.name, "."):
		return table{}, fmt.Errorf("table %q: more than one dot", text)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return table{}, fmt.Errorf("table %q: not plain text", text)
	}
	return t, nil
}

func (t table) String() string {
	if t.schema == "" {
		return t.name
	}
	return t.schema + "." + t.name
}

// quoted returns the name as part of a statement.
func (t table) quoted(quote string) string {
	name := quote + strings.ReplaceAll(t.name, quote, quote+quote) + quote
	if t.schema == "" {
		return name
	}
	return t.in(quote) + name
}

// in returns the schema as the beginning of a name in a statement; empty if there is none.
func (t table) in(quote string) string {
	if t.schema == "" {
		return ""
	}
	return quote + strings.ReplaceAll(t.schema, quote, quote+quote) + quote + "."
}

// insert reads the row first: the answer to an INSERT does not tell the era in every database.
func (s *Store) insert(ctx context.Context, c session, key string, value []byte) (version, error) {
	r, err := s.row(ctx, c, key)
	if err := cmp.Or(err, c.ended()); err != nil {
		return version{}, err
	}
	next := version{seal.New(key, value), r.era}
	return next, s.write(ctx, c, key, value, next, s.text.insert, key, value, next.stamp, next.era)
}

// insertFirst writes only if nothing was ever written to the table.
func (s *Store) insertFirst(ctx context.Context, c session, key, era string, value []byte) (version, error) {
	next := version{seal.New(key, value), era}
	return next, s.write(ctx, c, key, value, next, s.text.first, key, value, next.stamp, next.era)
}

// untouched reports whether the database proves that nothing was ever written to the table.
func (s *Store) untouched(ctx context.Context, c session) (proven bool, err error) {
	err = c.queryRow(ctx, s.text.untouched).Scan(&proven)
	if err != nil && s.dialect.means(s.code(err), err.Error()) == noTable {
		return false, nil // an older version made the table, without the sequence
	}
	return proven, err
}

func (s *Store) update(ctx context.Context, c session, key string, was version, value []byte) (version, error) {
	next := version{seal.New(key, value), was.era}
	return next, s.write(ctx, c, key, value, next, s.text.update, value, next.stamp, key, was.stamp, was.era)
}

// write runs one statement and reads the row back on the same connection. A session in which a
// transaction was left open acknowledges a write that is not committed, and a trigger, a rule or a
// view may acknowledge one that changes nothing. write returns driver.ErrConflict if the statement
// writes no row, and an unconfirmedError if the row is not as written.
func (s *Store) write(ctx context.Context, c session, key string, value []byte, next version, query string, args ...any) error {
	return c.commit(ctx, s.dialect.transaction, func(c session) error {
		result, err := c.exec(ctx, query, args...)
		if err != nil {
			return err
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 0 {
			return cmp.Or(err, driver.ErrConflict)
		}
		if err := s.readBack(ctx, c, key, value, next); err != nil {
			return &unconfirmedError{err}
		}
		return nil
	})
}

var errChanged = errors.New("the row is not as it was written a moment ago: another member wrote in between, " +
	"or a trigger, a rule or a view of the database changes writes to this table (tenure run --inspect names it)")

func (s *Store) readBack(ctx context.Context, c session, key string, value []byte, next version) error {
	r, err := s.row(ctx, c, key)
	if err != nil {
		return err
	}
	if r.version.String != next.stamp || r.wroteIn.String != next.era || !bytes.Equal(r.value, value) {
		return errChanged
	}
	return nil
}

// known returns an error if the database names no era.
func (s *Store) known(now sql.NullString) error {
	if now.Valid {
		return nil
	}
	return errors.New("the database does not name its era (or WithEra gives null), which it refuses to a session that is not fit " +
		"for elections: " + s.dialect.unfit)
}
