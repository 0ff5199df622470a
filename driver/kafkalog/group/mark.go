package group

import (
	"errors"
	"fmt"
)

// MetadataKey is where a leader publishes the consumer group that nominates it.
const MetadataKey = "kafka.group"

// ErrOtherGroup says that the leader of the election is nominated by another consumer group.
var ErrOtherGroup = errors.New("two consumer groups nominate for one election")

// Metadata is what a candidate nominated by the group of this name adds to its election's metadata, so that CheckLeader can
// tell.
func Metadata(name string) map[string]string { return map[string]string{MetadataKey: name} }

// CheckLeader looks at what a leader publishes, as a candidate nominated by the group of this name. It returns an error
// that wraps ErrOtherGroup, names both groups and says what to do, if the leader is nominated by another one. Each group has a nominee then,
// and the two take the election from each other: nothing but order suffers. A leader without a group is nobody's mistake.
func CheckLeader(name string, leader map[string]string) error {
	other := leader[MetadataKey]
	if other == "" || other == name {
		return nil
	}
	return fmt.Errorf("%w: this candidate is of group %q, and the leader of group %q: give all candidates of an election the same group, "+
		"and each group an election or a topic of its own", ErrOtherGroup, name, other)
}
