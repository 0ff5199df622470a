//go:build integration && unix

package main

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cmd/tenure-demo/internal/test/servers"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestDemoOnKafkaSurvivesKillsPausesAndStops(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]string{"log": "?timeout=20s", "neli": "?mode=neli&session=1s&timeout=20s"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, "--store", "kafka-embedded:"+parameters, "--candidates", "3", "--lease", "2s", "--crash-every", "500ms")
			s.survives()
			s.leastIsShown()
		})
	}
}

// Two demos with different groups hold one election. Both report this, and they never overlap.
func TestDemoReportsTwoGroupsOnOneElection(t *testing.T) {
	t.Parallel()
	store := "kafka://" + servers.Kafka(t) + "/elections?mode=neli&session=30s&timeout=20s&group="
	args := []string{"--create", "--candidates", "1", "--lease", "30s", "--crash-every", "0", "--store"}
	first := begin(t, append(args, store+"one")...)
	first.await("a candidate leads", isElected)
	second := begin(t, append(args, store+"two")...)
	l := second.await("an alarm", func(l line) bool { return l.Event == "alarm" })
	if !strings.Contains(l.Cause, `this candidate is of group "two", and the leader of group "one"`) || l.Term == 0 {
		t.Errorf("got %+v", l)
	}
	for _, s := range []*show{first, second} {
		if sum := interrupt(t, s); *sum.Overlaps != 0 {
			t.Errorf("%d overlaps", *sum.Overlaps)
		}
		s.nothingLeft()
	}
}

// Only a write shows that writing is denied, so the candidates have started by then.
func TestDemoEndsWithoutTheRightToWriteToKafka(t *testing.T) {
	t.Parallel()
	var rights []kfake.ACL
	for _, o := range []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationDescribe, kmsg.ACLOperationCreate} {
		rights = append(rights, kfake.ACL{
			Resource: kmsg.ACLResourceTypeTopic, Name: "elections", Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: o, Allow: true,
		})
	}
	hosts := servers.Kafka(t, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "reader", "s3cret", rights...))
	s := begin(t, "--store", "kafka://reader:s3cret@"+hosts+"/elections?timeout=20s", "--create", "--candidates", "2")
	fails(t, s, "error: --store kafka://***@"+hosts+"/elections?timeout=20s: ", "TOPIC_AUTHORIZATION_FAILED", "\nhint: grant it with kafka-acls.sh")
	s.nothingLeft()
}
