package slots

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/nomination"
)

// Config holds the settings of this member. The zero value of a field means its default:
//
//	field      default           limits
//	Election   as tenure.Config
//	Slots      none              1 to 256
//	PerMember  1                 1 to Slots
type Config struct {
	// Election holds the settings of this member in the election of each slot. Leave Priority and
	// Nomination unset: this package uses them. Metadata must not have the key MetadataKey.
	// Tuning.Renew is at most half of the lease.
	Election tenure.Config
	// Slots is N, the largest number of leaders. Give all members the same value. The documentation
	// of the package says what happens while they differ.
	Slots int
	// PerMember is the largest number of slots that this member holds at a time.
	PerMember int
}

// MetadataKey is the key under which the leader of a slot publishes its Config.Slots.
const MetadataKey = "slots"

// maxSlots bounds the time that each change costs, and the reads of stores that push nothing.
const maxSlots = 256

func (c *Config) validate(name string, full *tenure.Config) (found []tenure.FieldError) {
	add := func(field string, value any, problem, remedy string) {
		found = append(found, tenure.FieldError{Field: field, Value: value, Problem: problem, Remedy: remedy})
	}
	if name == "" {
		add("Name", name, "is empty", "")
	}
	if c.Slots < 1 || c.Slots > maxSlots {
		add("Slots", c.Slots, fmt.Sprintf("is %d", c.Slots), fmt.Sprintf("it must be from 1 to %d", maxSlots))
	} else if c.PerMember < 1 || c.PerMember > c.Slots {
		add("PerMember", c.PerMember, fmt.Sprintf("is %d", c.PerMember), fmt.Sprintf("it must be from 1 to Slots, which is %d", c.Slots))
	}
	e := &c.Election
	if e.Priority != 0 {
		add("Election.Priority", e.Priority, fmt.Sprintf("is %d", e.Priority), "leave it unset: all members of a slot are equal")
	}
	if e.Nomination.Nominator != nil || e.Nomination.Only || e.Nomination.Precedence != 0 {
		add("Election.Nomination", e.Nomination.Precedence, "is set", "leave it unset: the slots use it")
	}
	if text, ok := e.Metadata[MetadataKey]; ok {
		add("Election.Metadata", text, fmt.Sprintf("has the key %q", MetadataKey), "it is for the number of slots: use another key")
	}
	if renew := full.Tuning.Renew; renew > full.Lease/2 {
		add("Election.Tuning.Renew", renew, fmt.Sprintf("is %v", renew),
			fmt.Sprintf("it must be at most half of the lease of %v: a leader has to see the other slots once in each lease", full.Lease))
	}
	return found
}

// invalid returns nil if there are no problems.
func invalid(name string, found []tenure.FieldError) error {
	if len(found) == 0 {
		return nil
	}
	return &tenure.ConfigError{Subject: fmt.Sprintf("slots %q", name), Fields: found}
}

// election returns the settings of the slots' elections.
func (c *Config) election(gateOf func(election string) nomination.Nominator) tenure.Config {
	e := c.Election
	e.Metadata = maps.Clone(e.Metadata)
	if e.Metadata == nil {
		e.Metadata = map[string]string{}
	}
	e.Metadata[MetadataKey] = strconv.Itoa(c.Slots)
	e.Nomination = nomination.Config{Nominator: gateOf, Precedence: -1}
	return e
}

// sizeOf returns the number of slots that a leader has published; 0 if it has published none.
func sizeOf(l tenure.Leader) int {
	n, err := strconv.Atoi(l.Metadata[MetadataKey])
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// pace is how often the record of a slot is read while the store does not push changes.
type pace int

const (
	paceSeek  pace = iota // this member may take one more slot
	paceIdle              // it holds as many as it may
	paceClose             // it holds or seeks a slot above this one: see gate
)

// at returns the settings of a slot that is read at this pace.
func (p pace) at(base tenure.Config, full *tenure.Config) tenure.Config {
	t := &base.Tuning
	switch p {
	case paceSeek:
	case paceIdle:
		t.Poll = max(full.Tuning.Poll, min(full.Lease, time.Hour))
		t.PollStable = max(full.Tuning.PollStable, t.Poll)
	case paceClose:
		t.Poll = min(full.Tuning.Poll, full.Lease/3)
		t.PollStable = t.Poll
		if base.Tuning.Retry == nil {
			t.Retry = closeRetries(full)
		}
	}
	return base
}

// closeRetries returns waits after failed reads, so short that an outage which the leases survive
// makes no leader leave.
func closeRetries(full *tenure.Config) []time.Duration {
	again := min(full.Lease/12, full.Tuning.Renew)
	all := []time.Duration{0, min(100*time.Millisecond, again)}
	for len(all) < 10 {
		all = append(all, again)
	}
	return all
}

func (c Config) withDefaults() Config {
	c.PerMember = cmp.Or(c.PerMember, 1)
	return c
}
