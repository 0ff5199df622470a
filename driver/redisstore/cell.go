package redisstore

import (
	"cmp"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/seal"
)

const (
	// latest is above every term that a candidate takes until the year 2112, when a clock in
	// microseconds reaches it. The floor can be far below such a term where a key was removed and
	// the server's clock is not set. A clock that is not below it is not credible.
	latest = 1 << 52
	// highest leaves 2^40 terms. A floor in a hash that is not below it is not credible.
	highest = 1<<53 - 1<<40
)

// cell is what a script has read, with the era and the clock of the server at that moment.
type cell struct {
	era    string
	clock  uint64
	exists bool
	// The fields of the hash; empty if they are missing.
	version, value, wroteIn string
	floor                   uint64
}

var errForeign = errors.New("the key holds a hash without the fields version and value: another program uses this key")

// parseCell reads the answer of readScript.
func parseCell(answer []string) (cell, error) {
	if len(answer) != 7 {
		return cell{}, errors.New("the script returned an unexpected answer")
	}
	c := cell{
		era: answer[0], exists: answer[2] == "1", version: answer[3], value: answer[4], wroteIn: answer[6],
	}
	var err error
	if c.clock, err = strconv.ParseUint(answer[1], 10, 64); err != nil {
		return cell{}, err
	}
	c.floor, _ = strconv.ParseUint(answer[5], 10, 64) // 0 if it is not digits alone
	if c.exists && (c.version == "" || c.value == "") {
		return cell{}, errForeign
	}
	return c, nil
}

func (c cell) entry(key string) driver.Entry {
	e := driver.Entry{Floor: c.bound(), Ceiling: latest, Era: era(c.era)}
	if c.exists {
		e.Value, e.Version = []byte(c.value), version{c.version, c.era}.version()
		e.Unproven = c.wroteIn != c.era || !seal.Unbroken(c.version, key, e.Value)
	}
	return e
}

// bound returns the larger of the hash's floor and the server's clock, as far as they are credible.
// If neither is, it returns the larger one, which an election reports.
func (c cell) bound() uint64 {
	var floor, clock uint64
	if c.floor < highest {
		floor = c.floor
	}
	if c.clock < latest {
		clock = c.clock
	}
	return cmp.Or(max(floor, clock), max(c.floor, c.clock))
}

// era makes a number of a replication ID.
func era(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return max(h.Sum64(), 1)
}

// version is a driver.Version: the stamp that the writer has drawn, and the era in which the state
// was read or written. Eras have no spaces.
type version struct{ stamp, era string }

func (v version) version() driver.Version { return driver.Version(v.stamp + " " + v.era) }

func parseVersion(v driver.Version) version {
	at := strings.LastIndexByte(string(v), ' ')
	if at < 0 {
		return version{stamp: string(v)}
	}
	return version{string(v[:at]), string(v[at+1:])}
}

var errNews = errors.New("not a message of redisstore")

// parseNews returns the key in a message of the channel, and the state of the cell according to it.
// The state is Unverified, because others may publish to the channel. An error means that only the
// key can be used.
func parseNews(message string) (key string, e driver.Entry, err error) {
	fields := strings.SplitN(message, "\n", 5)
	key = fields[0]
	if len(fields) < 5 || fields[3] == "" || strings.Contains(fields[3], " ") {
		return key, driver.Entry{}, errNews
	}
	stamp, wroteIn, value := fields[1], fields[3], []byte(fields[4])
	floor, err := strconv.ParseUint(fields[2], 10, 64)
	if err != nil || len(value) > driver.MaxValue || !seal.Unbroken(stamp, key, value) {
		return key, driver.Entry{}, errNews
	}
	return key, driver.Entry{
		Value: value, Version: version{stamp, wroteIn}.version(), Floor: floor, Ceiling: latest,
		Era: era(wroteIn), Unverified: true,
	}, nil
}
