package protocol_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// args are the words after the first of an input.
type args struct {
	version string // v1
	own     string // n1: the record that the machine wrote with this nonce
	flag    map[string]bool
	text    map[string]string
	number  map[string]uint64
	lease   time.Duration
	delay   time.Duration
}

var (
	versionWord = regexp.MustCompile(`^v\d+$`)
	ownWord     = regexp.MustCompile(`^n\d+$`)
	numberWords = strings.Fields("term seq floor ceiling era drift")
	textWords   = strings.Fields("holder to by nonce incarnation successor request offer request-term because")
)

func parseArgs(words []string) (args, error) {
	a := args{flag: map[string]bool{}, text: map[string]string{}, number: map[string]uint64{}}
	for _, w := range words {
		key, value, pair := strings.Cut(w, "=")
		var err error
		switch {
		case versionWord.MatchString(w):
			a.version = w
		case ownWord.MatchString(w):
			a.own = w
		case !pair:
			a.flag[w] = true
		case key == "lease":
			a.lease, err = time.ParseDuration(value)
		case key == "delay":
			a.delay, err = time.ParseDuration(value)
		case slices.Contains(numberWords, key):
			a.number[key], err = strconv.ParseUint(value, 10, 64)
		case slices.Contains(textWords, key):
			a.text[key] = value
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return a, fmt.Errorf("%q: %w", w, err)
		}
	}
	return a, nil
}

// cell returns the cell that a read or a push shows.
func (s *stage) cell(a args) protocol.Cell {
	c := protocol.Cell{
		Version: driver.Version(a.version), Floor: a.number["floor"], Ceiling: a.number["ceiling"],
		Era: a.number["era"], Unverified: a.flag["unverified"], Unproven: a.flag["unproven"],
	}
	switch {
	case a.flag["pristine"]:
		c.Pristine = true
		return c
	case a.flag["absent"]:
		if why, ok := a.text["because"]; ok {
			c.Problem = errors.New(why)
		}
		return c
	case a.flag["foreign"]:
		c.Kind, c.Problem = protocol.Foreign, errors.New("no JSON")
		return c
	}
	c.Kind, c.Record = protocol.Valid, s.record(a)
	if a.flag["malformed"] {
		c.Kind, c.Problem = protocol.Malformed, errors.New("lease is 2h")
		c.Record = record.Record{Term: c.Record.Term, Lease: c.Record.Lease, Nonce: c.Record.Nonce}
	}
	return c
}

// record returns a record that the machine wrote, or one from the words. Either may have a request.
func (s *stage) record(a args) record.Record {
	r, ok := s.own[a.own]
	if !ok {
		r = record.Record{
			LeaderID: a.text["holder"], Incarnation: a.text["incarnation"], Term: a.number["term"], Seq: a.number["seq"],
			Nonce: a.text["nonce"], Lease: a.lease, Released: a.flag["released"], Successor: a.text["successor"],
			Drift: uint32(a.number["drift"]),
		}
		if r.Incarnation == "" && r.LeaderID != "" {
			r.Incarnation = r.LeaderID + "1"
		}
		if r.Lease == 0 {
			r.Lease = s.cfg.Lease
		}
	}
	to, asked := a.text["request"]
	offered, offer := a.text["offer"]
	if asked || offer {
		if to == "anybody" {
			to = ""
		}
		r.Request = &record.Request{Term: r.Term, To: to + offered, By: "operator", Offer: offer}
		if t, err := strconv.ParseUint(a.text["request-term"], 10, 64); err == nil {
			r.Request.Term = t
		}
	}
	return r
}
