package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/tenure-go/tenure/driver"
)

const (
	// surveyWithin bounds the questions to one endpoint.
	surveyWithin = 2 * time.Second
	// manyRevisions is so many that a cluster with automatic compaction has compacted by then.
	manyRevisions = 100_000
)

// sight is what an endpoint says of itself.
type sight struct {
	endpoint string
	status   *pb.StatusResponse
	err      error
}

// Inspect checks each endpoint: whether it answers, belongs to the same cluster as the others, is a
// voting member with a leader and room for writes, and runs a release that keeps its data. It makes
// a request to each, over connections of its own, and two to the cluster. They change nothing. It
// does not see whether the servers fsync (--unsafe-no-fsync) or how they are backed up. Errors are
// as for Read.
func (s *Store) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	at, err := s.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("etcdkv: inspect: %w", err)
	}
	seen := s.survey(ctx)
	var all []driver.Finding
	for _, one := range seen {
		all = append(all, atEndpoint(one, at)...)
	}
	if len(seen) == 1 && seen[0].err == nil {
		all = append(all, s.atMembers(ctx)...)
	}
	if at.revision > manyRevisions && !s.compacts(ctx) {
		all = append(all, driver.Finding{
			Severity: driver.Warning, Setting: "auto-compaction-retention",
			Problem: "the cluster keeps all revisions since its first one: each renewal adds one, until the database is full and no leader can renew",
			Remedy:  "start the members with --auto-compaction-retention=1h, or compact from time to time",
		})
	}
	return all, nil
}

// survey asks all endpoints at once.
func (s *Store) survey(ctx context.Context) []sight {
	endpoints := s.client.Endpoints()
	all := make([]sight, len(endpoints))
	var asking sync.WaitGroup
	for i, endpoint := range endpoints {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, surveyWithin)
			defer cancel()
			status, err := s.client.Status(ctx, endpoint)
			all[i] = sight{endpoint, (*pb.StatusResponse)(status), explain(ctx, err)}
		})
	}
	asking.Wait()
	return all
}

// atEndpoint returns the findings about one endpoint.
func atEndpoint(s sight, at point) []driver.Finding {
	found := func(severity driver.Severity, problem, remedy string) []driver.Finding {
		return []driver.Finding{{Severity: severity, Setting: "endpoint " + s.endpoint, Problem: problem, Remedy: remedy}}
	}
	if s.err != nil {
		return found(driver.Warning, fmt.Sprintf("it does not answer (%v)", s.err), "check that it runs, and the address")
	}
	var all []driver.Finding
	if s.status.Header.ClusterId != at.cluster {
		all = append(all, found(driver.Unsafe, fmt.Sprintf("it belongs to cluster %x, and another endpoint to %x: members may lead in both",
			s.status.Header.ClusterId, at.cluster), "give the endpoints of one cluster, to all candidates the same")...)
	}
	if s.status.IsLearner {
		all = append(all, found(driver.Warning, "it is a learner, which serves no elections: each request that it gets is sent once more",
			"leave it out, or promote it: etcdctl member promote")...)
	}
	if s.status.Leader == 0 {
		all = append(all, found(driver.Warning, "it has no leader", "check that most members run and reach each other")...)
	}
	if slices.ContainsFunc(s.status.Errors, func(text string) bool { return strings.Contains(text, "NOSPACE") }) {
		all = append(all, found(driver.Unsafe, "the alarm NOSPACE is raised: the cluster refuses writes, so no leader can be elected or renew",
			"etcdctl compact, etcdctl defrag, then etcdctl alarm disarm")...)
	}
	if slices.ContainsFunc(s.status.Errors, func(text string) bool { return strings.Contains(text, "CORRUPT") }) {
		all = append(all, found(driver.Unsafe, "the alarm CORRUPT is raised: the members hold different data",
			"replace the corrupt member: https://etcd.io/docs/latest/op-guide/data_corruption/")...)
	}
	return append(all, atRelease(s.status.Version, found)...)
}

// atRelease knows the releases that lose data.
func atRelease(version string, found func(driver.Severity, string, string) []driver.Finding) []driver.Finding {
	var minor, patch int
	if n, _ := fmt.Sscanf(version, "3.%d.%d", &minor, &patch); n < 2 {
		return nil
	}
	switch {
	case minor == 5 && patch <= 2:
		return found(driver.Unsafe, "release "+version+" can lose acknowledged writes when a member is killed",
			"upgrade to the latest release of 3.5, or a later one")
	case minor == 5 && patch <= 5, minor == 4 && patch <= 21, minor < 4:
		// etcd's issues 14370 (one member), 14685 (killed while it defragments, 3.5) and 14571 (a
		// new member where authentication is on).
		return found(driver.Unsafe, "when its process is killed, or a member is added, release "+version+
			" can lose acknowledged writes, or let members hold different revisions, so two of them may accept different claims",
			"upgrade to 3.5.6, 3.4.22 or a later release")
	case minor == 4:
		return found(driver.Advice, "release "+version+" is not maintained any more", "upgrade to a later release")
	}
	return nil
}

// atMembers returns the findings about the number of members. Without the right to list them it
// returns none.
func (s *Store) atMembers(ctx context.Context) []driver.Finding {
	ctx, cancel := context.WithTimeout(ctx, surveyWithin)
	defer cancel()
	list, err := s.client.MemberList(ctx)
	switch {
	case err != nil:
		return nil
	case len(list.Members) > 1:
		return []driver.Finding{{
			Severity: driver.Warning, Setting: "endpoints",
			Problem: fmt.Sprintf("the cluster has %d members, and one endpoint is given: while that member is down no leader can renew", len(list.Members)),
			Remedy:  "give the endpoints of all members",
		}}
	}
	return []driver.Finding{{
		Severity: driver.Advice, Setting: "members", Problem: "no leader can be elected or renewed while the one member is down",
		Remedy: "run a cluster of three members",
	}}
}

// compacts reports whether the first revision is compacted, or that is not known.
func (s *Store) compacts(ctx context.Context) bool {
	_, err := s.kv.Range(ctx, &pb.RangeRequest{Key: []byte(s.prefix), Revision: 1, KeysOnly: true, Serializable: true})
	return err != nil || errors.Is(rpctypes.Error(err), rpctypes.ErrCompacted)
}
