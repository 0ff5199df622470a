package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const topic = "t"

func member(id string, metadata []byte) kmsg.JoinGroupResponseMember {
	m := kmsg.NewJoinGroupResponseMember()
	m.MemberID, m.ProtocolMetadata = id, metadata
	return m
}

// TestPlan: one member gets the partition, the same one whichever member decides. The owner keeps
// it.
func TestPlan(t *testing.T) {
	newer := kgo.CooperativeStickyBalancer().JoinGroupMetadata([]string{topic}, map[string][]int32{topic: {0}}, 9)
	cases := []struct {
		name      string
		members   []kmsg.JoinGroupResponseMember
		want      string
		strangers int
	}{
		{"first", []kmsg.JoinGroupResponseMember{member("b", claim(topic, false, -1)), member("a", claim(topic, false, -1))}, "a", 0},
		{"a join moves nothing", []kmsg.JoinGroupResponseMember{member("a", claim(topic, false, -1)), member("b", claim(topic, true, 3))}, "b", 0},
		{"nor does a generation", []kmsg.JoinGroupResponseMember{member("a", claim(topic, false, 7)), member("b", claim(topic, true, 3))}, "b", 0},
		{"the latest owner", []kmsg.JoinGroupResponseMember{member("a", claim(topic, true, 3)), member("b", claim(topic, true, 4)), member("c", claim(topic, true, 2))}, "b", 0},
		{"two at once", []kmsg.JoinGroupResponseMember{member("b", claim(topic, true, 4)), member("a", claim(topic, true, 4))}, "a", 0},
		{"an earlier member", []kmsg.JoinGroupResponseMember{member("a", claim(topic, false, -1)), member("b", claim(topic, false, 4))}, "b", 0},
		{"another topic", []kmsg.JoinGroupResponseMember{member("a", claim("other", true, 8)), member("b", claim(topic, false, 1))}, "b", 1},
		{"unreadable metadata", []kmsg.JoinGroupResponseMember{member("a", []byte("?")), member("b", claim(topic, false, 1))}, "b", 1},
		{"written by a library", []kmsg.JoinGroupResponseMember{member("a", claim(topic, true, 8)), member("b", newer)}, "b", 0},
		{"no possible owner", []kmsg.JoinGroupResponseMember{member("a", nil)}, "", 1},
	}
	for _, c := range cases {
		for range 2 {
			all, strangers := plan(topic, c.members)
			got := ""
			for _, a := range all {
				owns, err := assigned(topic, a.MemberAssignment)
				if err != nil {
					t.Fatal(err)
				}
				if owns {
					got += a.MemberID
				}
			}
			if got != c.want || strangers != c.strangers || len(all) != len(c.members) {
				t.Errorf("%s: %q owns it, %d strangers", c.name, got, strangers)
			}
			c.members[0], c.members[len(c.members)-1] = c.members[len(c.members)-1], c.members[0]
		}
	}
}

func FuzzAssigned(f *testing.F) {
	f.Add(assignment(topic, true))
	f.Add(claim(topic, true, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = assigned(topic, data)
		_, _, _ = claimed(topic, data)
	})
}
