package group

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestConfig(t *testing.T) {
	c, err := Config{}.settle()
	if err != nil || c.Topic != c.Name+".neli" || c.SessionTimeout != 15*time.Second || c.Heartbeat != 3*time.Second {
		t.Errorf("the defaults are %+v, %v", c, err)
	}
	bad := Config{
		Name: "a b", Topic: strings.Repeat("x", 250), SessionTimeout: time.Millisecond, Heartbeat: time.Hour, Replicas: -1, Instance: "ü",
	}
	_, err = bad.settle()
	for _, field := range []string{"Name", "Topic", "SessionTimeout", "Heartbeat", "Replicas", "Instance"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s is not named in: %v", field, err)
		}
	}
	if legal("my app/1") != "my_app_1" {
		t.Error(legal("my app/1"))
	}
}

func TestCheckLeader(t *testing.T) {
	for _, of := range []map[string]string{nil, {}, Metadata("ours")} {
		if err := CheckLeader("ours", of); err != nil {
			t.Error(err)
		}
	}
	err := CheckLeader("ours", Metadata("theirs"))
	if !errors.Is(err, ErrOtherGroup) || !strings.Contains(err.Error(), `"ours"`) || !strings.Contains(err.Error(), `"theirs"`) {
		t.Error(err)
	}
}

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
