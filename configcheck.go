package tenure

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// Check returns the error that New returns for an election of this name on a store with these
// limits, so a program can check its settings before it opens the store.
func (c Config) Check(limits driver.Bounded, name string) error {
	full := c.WithDefaults()
	return full.validate(driver.Abilities{Bounded: limits}, name, &c, c.Nomination.Nominator != nil)
}

// validate returns all problems of the given Config and the name at once.
func (c *Config) validate(able driver.Abilities, name string, given *Config, hasNominator bool) error {
	return invalid(name, checkName(able, name), c.check(able, given), c.checkNomination(hasNominator))
}

// check returns all problems of the given Config but those of nomination. It leaves out those that
// follow from another problem, or from a default.
func (c *Config) check(able driver.Abilities, given *Config) problems {
	timing := slices.Concat(c.checkLease(able), c.checkDrift(), given.checkLimits(), given.checkRetry(driver.MaxLease))
	if len(timing) == 0 {
		timing = slices.Concat(c.checkMargin(), between("Tuning.PollStable", c.Tuning.PollStable, c.Tuning.Poll, time.Hour), c.checkRetry(c.Tuning.Renew))
	}
	return slices.Concat(c.checkRecord(), timing)
}

// checkLimits checks each duration by itself. 0 selects the default, and a negative value means
// none where it is allowed.
func (c *Config) checkLimits() (found problems) {
	for _, f := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
		mayBeNone   bool
	}{
		{"FinishWithin", c.FinishWithin, time.Millisecond, 24 * time.Hour, true},
		{"StopWithin", c.StopWithin, 0, driver.MaxLease, false},
		{"Tuning.Grace", c.Tuning.Grace, 0, driver.MaxLease, false},
		{"Tuning.Splay", c.Tuning.Splay, 0, time.Hour, false},
		{"Tuning.Poll", c.Tuning.Poll, time.Millisecond, time.Hour, false},
		{"Tuning.PollStable", c.Tuning.PollStable, time.Millisecond, time.Hour, false},
		{"Tuning.TimerLateness", c.Tuning.TimerLateness, 0, driver.MaxLease, true},
		{"Tuning.Renew", c.Tuning.Renew, time.Millisecond, driver.MaxLease, false},
		{"Nomination.Precedence", c.Nomination.Precedence, 0, time.Hour, true},
	} {
		if f.value > 0 || f.value < 0 && !f.mayBeNone {
			found = append(found, between(f.name, f.value, f.least, f.most)...)
		}
	}
	return found
}

func (c *Config) checkLease(able driver.Abilities) problems {
	if found := between("Lease", c.Lease, able.MinLease(), able.MaxLease()); found != nil {
		return found
	}
	if c.Lease%time.Millisecond != 0 {
		return problem("Lease", c.Lease, fmt.Sprintf("is %v", c.Lease), "it must be whole milliseconds")
	}
	return nil
}

func (c *Config) checkRetry(most time.Duration) problems {
	if len(c.Tuning.Retry) > maxRetry {
		return problem("Tuning.Retry", c.Tuning.Retry, fmt.Sprintf("has %d waits, more than %d", len(c.Tuning.Retry), maxRetry), "")
	}
	for i, d := range c.Tuning.Retry {
		if found := between(fmt.Sprintf("Tuning.Retry[%d]", i), d, 0, most); found != nil {
			return found
		}
	}
	return nil
}

// checkNomination: either the Nominator or the Priority decides which candidate has precedence.
func (c *Config) checkNomination(hasNominator bool) problems {
	switch {
	case hasNominator && c.Priority != 0:
		return problem("Priority", c.Priority, fmt.Sprintf("is %d", c.Priority),
			"it must be 0 with a Nominator, which alone decides which candidate has precedence")
	case !hasNominator && c.Nomination.Only:
		return problem("Nomination.Only", true, "is true without a Nominator, so no candidate can ever lead",
			"set Nomination.Nominator, or leave Nomination.Only false")
	}
	return nil
}

// maxRetry bounds the number of tries in a row that are faster than Renew.
const maxRetry = 10

func (c *Config) checkDrift() problems {
	if math.IsNaN(c.Tuning.Drift) || c.Tuning.Drift >= 0.5 {
		return problem("Tuning.Drift", c.Tuning.Drift, fmt.Sprintf("is %v", c.Tuning.Drift), "it is a bound such as 0.01 and must be below 0.5")
	}
	return nil
}

// checkRecord also checks the total: quotes and the like take up to six bytes in JSON, so fields
// within their limits may be too long together.
func (c *Config) checkRecord() problems {
	found := slices.Concat(predicate("ID", c.ID, record.CheckName(c.ID)),
		predicate("Address", c.Address, record.CheckName(c.Address)),
		predicate("Metadata", c.Metadata, record.CheckMetadata(c.Metadata)),
		predicate("Priority", c.Priority, record.CheckPriority(c.Priority)))
	if len(found) > 0 {
		return found
	}
	random := strings.Repeat("0", 16)
	_, err := record.Encode(record.Record{
		LeaderID: c.ID, LeaderAddr: c.Address, Metadata: c.Metadata, LastUpdated: time.Unix(0, 1), Lease: driver.MaxLease,
		Term: record.MaxTerm, Seq: record.MaxTerm, Incarnation: strings.Repeat("0", record.MaxToken), Nonce: random,
		Priority: -record.MaxPriority, Drift: record.MaxDrift,
		Released: true, Successor: strings.Repeat("x", record.MaxName),
	})
	if err != nil {
		return problem("Metadata", c.Metadata, fmt.Sprintf("does not fit into one record together with ID and Address: %v", err), "")
	}
	return nil
}

// checkMargin: the time between a renewal and the deadline must allow two tries.
func (c *Config) checkMargin() problems {
	margin := protocol.Margin(c.Lease, c.Tuning.Drift, c.Tuning.TimerLateness, c.StopWithin)
	usable := c.Lease - margin
	if c.Tuning.Renew+2*time.Millisecond > usable {
		return problem("Lease", c.Lease, fmt.Sprintf("is %v, too short for Renew (%v) and a margin of %v for clock drift, "+
			"TimerLateness and StopWithin", c.Lease, c.Tuning.Renew, margin.Round(time.Millisecond)),
			"lengthen Lease, or shorten Renew or StopWithin")
	}
	if c.Tuning.Grace >= usable {
		return problem("Tuning.Grace", c.Tuning.Grace, fmt.Sprintf("is %v", c.Tuning.Grace),
			fmt.Sprintf("it must be below the usable %v of the Lease", usable))
	}
	return nil
}

// ConfigError has all problems of a Config and of an election's name. New, NewGroup, Group.Election
// and Reconfigure return it, and so does package fleet.
type ConfigError struct {
	// Subject is what has the problems: the election with its name, or the group.
	Subject string
	// Fields has at least one problem.
	Fields []FieldError
}

// Error returns the subject and a line for each problem.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Fields))
	for i := range e.Fields {
		lines[i] = e.Fields[i].Error()
	}
	return fmt.Sprintf("tenure: %s: %s", e.Subject, strings.Join(lines, "\n"))
}

// Unwrap returns the problems.
func (e *ConfigError) Unwrap() []error {
	all := make([]error, len(e.Fields))
	for i := range e.Fields {
		all[i] = &e.Fields[i]
	}
	return all
}

// FieldError is one problem of a Config or of an election's name.
type FieldError struct {
	// Field is the field of Config, such as "Lease", or "Name" for the name of the election.
	// Package fleet also names its own fields, and puts "Election." before those of its
	// Config.Election, as in "Election.Priority".
	Field string
	// Value is the value of that field, or its default if the field is not set.
	Value any
	// Problem says what is wrong with the field, without its name: "is 2h0m0s". Together with
	// Remedy it mentions other fields only if two fields contradict each other.
	Problem string
	// Remedy says what to change: "it must be from 50ms to 1h0m0s". It may be empty.
	Remedy string

	cause error // of the store
}

// Error returns the field, the problem and the remedy in one line.
func (e *FieldError) Error() string {
	if e.Field == fieldName {
		return e.About("the name")
	}
	return e.About(e.Field)
}

// About returns the same line as Error with another name for the field, such as that of a flag or
// of a key in a file.
func (e *FieldError) About(name string) string {
	text := name + " " + e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap returns the store's error if the store cannot hold the name, otherwise nil.
func (e *FieldError) Unwrap() error { return e.cause }

// fieldName is the Field of the name, which is not in Config.
const fieldName = "Name"

type problems = []FieldError

func problem(field string, value any, what, remedy string) problems {
	return problems{{Field: field, Value: value, Problem: what, Remedy: remedy}}
}

// predicate returns the problem of a field whose error text follows the field's name; none if err
// is nil.
func predicate(field string, value any, err error) problems {
	if err == nil {
		return nil
	}
	return problem(field, value, err.Error(), "")
}

func between(field string, d, least, most time.Duration) problems {
	if d < least || d > most {
		return problem(field, d, fmt.Sprintf("is %v", d), fmt.Sprintf("it must be from %v to %v", least, most))
	}
	return nil
}

// invalid returns nil if there are no problems.
func invalid(name string, found ...problems) error {
	if all := slices.Concat(found...); len(all) > 0 {
		return &ConfigError{fmt.Sprintf("election %q", name), all}
	}
	return nil
}

func checkName(able driver.Abilities, name string) problems {
	if name == "" {
		return problem(fieldName, name, "is empty", "")
	}
	if err := able.CheckKey(name); err != nil {
		what := fmt.Sprintf("cannot be a key of the store: %v", err)
		return problems{{Field: fieldName, Value: name, Problem: what, cause: err}}
	}
	return nil
}
