package sqlstore

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/tenure-go/tenure/driver"
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
	// pristine: there is no row, and nothing was ever written to the table.
	pristine bool
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

func (r *row) entry(key string) driver.Entry {
	floor, notice := r.bound()
	e := driver.Entry{Floor: floor, Ceiling: latest, Era: era(r.era)}
	if r.pristine {
		e.Version, e.Pristine = driver.Version(untouched+r.era), true
	}
	if !r.version.Valid {
		return e
	}
	e.Value, e.Version, e.Notice = r.value, version{r.version.String, r.era}.version(), notice
	e.Unproven = r.wroteIn.String != r.era || !sealed(r.version.String, key, r.value) || notice != nil
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

// A stamp is 16 random bytes and a seal of 8 bytes, in hexadecimal. The random part never recurs,
// in a promoted standby or a restored dump either, as a counter would. The seal shows that the
// value was written together with the stamp.
const (
	randomSize = 16
	sealSize   = 8
)

func newStamp(key string, value []byte) string {
	random := make([]byte, randomSize, randomSize+sealSize)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(seal(random, key, value))
}

// seal appends the seal to the random part of a stamp.
func seal(random []byte, key string, value []byte) []byte {
	h := sha256.New()
	h.Write(random)
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(value)
	return append(random, h.Sum(nil)[:sealSize]...)
}

// sealed reports whether an adapter of this package wrote the value. A value that was edited by
// hand keeps the stamp of the one before it.
func sealed(stamp, key string, value []byte) bool {
	b, err := hex.DecodeString(stamp)
	if err != nil || len(b) != randomSize+sealSize {
		return false
	}
	return hex.EncodeToString(seal(b[:randomSize:randomSize], key, value)) == stamp
}
