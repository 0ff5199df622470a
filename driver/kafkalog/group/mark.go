package group

import (
	"errors"
	"fmt"
)

// MetadataKey is the key under which a leader publishes the consumer group that nominates it.
const MetadataKey = "kafka.group"

// ErrOtherGroup reports that another consumer group nominates the leader of the election.
var ErrOtherGroup = errors.New("two consumer groups nominate for one election")

// Metadata returns an addition to the metadata of a candidate that the group of this name
// nominates, for CheckLeader.
func Metadata(name string) map[string]string { return map[string]string{MetadataKey: name} }

// CheckLeader checks a leader's metadata, for a candidate that the group of this name nominates. It
// returns an error that wraps ErrOtherGroup if another group nominates the leader. The error names
// both groups and the remedy. Each group then has its own nominee. The two nominees take the
// election from each other again and again, but never lead at the same time. A leader without a
// group is not an error.
func CheckLeader(name string, leader map[string]string) error {
	other := leader[MetadataKey]
	if other == "" || other == name {
		return nil
	}
	return fmt.Errorf("%w: this candidate is of group %q, and the leader of group %q: give all candidates of an election the same group, "+
		"and each group an election or a topic of its own", ErrOtherGroup, name, other)
}
