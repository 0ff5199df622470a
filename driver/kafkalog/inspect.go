package kafkalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/kafkalog/internal/broker"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Inspect checks the topic's settings and replicas, how long a record stays in the log, the
// timeout, and foreign records in the log. It writes nothing.
//
// It needs the right DescribeConfigs on the topic. Errors are as for Read.
func (s *Store) Inspect(ctx context.Context, lease time.Duration) ([]driver.Finding, error) {
	v, err := s.survey(ctx)
	if err != nil {
		return nil, fmt.Errorf("kafkalog: inspect topic %s: %w", s.wire.topic, broker.Denied(err))
	}
	v.lease, v.seen = lease, s.tally()
	found := slices.Concat(v.findings(), v.atPace(), v.atForeign())
	if lease < 2*s.wire.timeout {
		found = append(found, driver.Finding{
			Severity: driver.Advice, Setting: "timeout",
			Problem: fmt.Sprintf("a broker may take %v for an answer, which leaves a lease of %v no second attempt on a new connection", s.wire.timeout, lease),
			Remedy:  "open the store with a shorter timeout (kafkalog.WithTimeout), or take a longer lease",
		})
	}
	return found, nil
}

func (s *Store) survey(ctx context.Context) (survey, error) {
	t, err := s.wire.metadata(ctx)
	if err != nil {
		return survey{}, err
	}
	values, err := s.settings(ctx)
	if err != nil {
		return survey{}, err
	}
	v := survey{topic: s.wire.topic, values: values}
	for _, p := range t.Partitions {
		if p.Partition == partition {
			v.replicas = len(p.Replicas)
		}
	}
	return v, nil
}

// settings asks for the topic's settings, its own or the brokers' defaults.
func (s *Store) settings(ctx context.Context) (map[string]string, error) {
	answer, err := s.wire.anyone(ctx, func() kmsg.Request {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, s.wire.topic
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = append(req.Resources, r)
		return req
	})
	if err != nil {
		return nil, err
	}
	resources := answer.(*kmsg.DescribeConfigsResponse).Resources
	if len(resources) != 1 {
		return nil, broker.ErrAnswer
	}
	if err := kerr.ErrorForCode(resources[0].ErrorCode); err != nil {
		return nil, fmt.Errorf("its settings (grant DescribeConfigs on the topic): %w", err)
	}
	values := map[string]string{}
	for _, c := range resources[0].Configs {
		if c.Value != nil {
			values[c.Name] = *c.Value
		}
	}
	return values, nil
}

// survey is the knowledge of Inspect.
type survey struct {
	topic    string
	replicas int
	values   map[string]string
	lease    time.Duration
	seen     tally
}

func (v survey) findings() []driver.Finding {
	var all []driver.Finding
	for _, look := range []func() []driver.Finding{v.atCleanup, v.atAge, v.atSize, v.atReplicas, v.atUnclean, v.atBatches, v.atTimestamps} {
		all = append(all, look()...)
	}
	return all
}

// number returns a setting as a number; ok is false if the brokers did not report it.
func (v survey) number(name string) (n int64, ok bool) {
	n, err := strconv.ParseInt(v.values[name], 10, 64)
	return n, err == nil
}

func (v survey) find(s driver.Severity, setting, problem, value string) []driver.Finding {
	return []driver.Finding{{Severity: s, Setting: setting, Problem: problem, Remedy: fmt.Sprintf(
		"kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config %s=%s", v.topic, setting, value)}}
}

func (v survey) atCleanup() []driver.Finding {
	if !strings.Contains(v.values["cleanup.policy"], "compact") {
		return nil
	}
	return v.find(driver.Unsafe, "cleanup.policy", "compaction refuses the records of elections, since they have no key, and removes records by which readers judge others", "delete")
}

// atAge: a leader's record lives only as long as its renewals; but a quiet topic is emptied below
// all members.
func (v survey) atAge() []driver.Finding {
	ms, ok := v.number("retention.ms")
	if !ok || ms < 0 {
		return nil
	}
	return v.find(driver.Unsafe, "retention.ms", fmt.Sprintf("records are removed %v after they were written, by the brokers' "+
		"clocks and whether they are in force or not", time.Duration(ms)*time.Millisecond), "-1")
}

func (v survey) atSize() []driver.Finding {
	size, ok := v.number("retention.bytes")
	switch {
	case !ok:
		return nil
	case size < 0:
		return v.find(driver.Warning, "retention.bytes", "the log grows for ever", fmt.Sprint(retentionBytes))
	case size < retentionBytes/4:
		return v.find(driver.Unsafe, "retention.bytes", fmt.Sprintf("%d bytes hold fewer records than a reader needs to tell "+
			"which of them count", size), fmt.Sprint(retentionBytes))
	}
	segment, ok := v.number("segment.bytes")
	if ok && segment > 4*retentionBytes {
		return v.find(driver.Advice, "segment.bytes", fmt.Sprintf("the log is cut by whole segments, so that it grows to %d bytes",
			size+segment), fmt.Sprint(segmentBytes))
	}
	return nil
}

func (v survey) atReplicas() []driver.Finding {
	inSync, ok := v.number("min.insync.replicas")
	switch {
	case v.replicas < 2:
		return []driver.Finding{{
			Severity: driver.Warning, Setting: "replication.factor",
			Problem: "there is one copy: while its broker is down there is no leader, and if it is lost so are all terms",
			Remedy:  "three brokers, and kafka-reassign-partitions.sh to give partition 0 of " + v.topic + " two replicas more",
		}}
	case ok && inSync < 2:
		return v.find(driver.Warning, "min.insync.replicas", "a write may be acknowledged while one broker alone has it: if that broker is lost, "+
			"the topic is unavailable or a term repeats", "2")
	case ok && int(inSync) >= v.replicas:
		return v.find(driver.Warning, "min.insync.replicas", "all replicas are needed for a write: any broker that is down "+
			"stops all elections", fmt.Sprint(v.replicas-1))
	}
	return nil
}

func (v survey) atUnclean() []driver.Finding {
	if v.values["unclean.leader.election.enable"] != "true" {
		return nil
	}
	return v.find(driver.Unsafe, "unclean.leader.election.enable", "a broker that lacks the latest records may become the "+
		"partition's leader: the latest records are lost, and terms that candidates have led may repeat", "false")
}

func (v survey) atBatches() []driver.Finding {
	const need = 2 * maxBatch
	if size, ok := v.number("max.message.bytes"); ok && size < need {
		return v.find(driver.Unsafe, "max.message.bytes", fmt.Sprintf("%d bytes are too few for the renewals of many elections "+
			"in one batch, which is then refused", size), fmt.Sprint(1<<20))
	}
	return nil
}

// atTimestamps: they decide nothing, but a broker may check those that a writer gives.
func (v survey) atTimestamps() []driver.Finding {
	if v.values["message.timestamp.type"] != "CreateTime" {
		return nil
	}
	return v.find(driver.Advice, "message.timestamp.type", "records have the times of their writers; brokers refuse the records of a candidate whose clock is "+
		"further ahead than message.timestamp.after.max.ms (1 h if not set), so that candidate can never lead", "LogAppendTime")
}
