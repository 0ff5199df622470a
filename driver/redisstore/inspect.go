package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
)

// Inspect checks the settings of the server, in a Cluster of each primary, that elections rely on.
// It only reads. It skips appendfsync if this user may not run CONFIG GET.
//
// Errors are as for Read.
func (s *Store) Inspect(ctx context.Context, _ time.Duration) ([]driver.Finding, error) {
	found, err := abandon.Run(ctx, &s.calls, func() (all []driver.Finding, err error) {
		for _, n := range s.nodes() {
			if all, err = s.inspect(ctx, n, all); err != nil {
				return nil, err
			}
		}
		return all, nil
	}, abandon.NoUndo)
	if err != nil {
		return nil, fmt.Errorf("redisstore: inspect the server: %w", explain(err))
	}
	return found, nil
}

// inspect adds the findings about one server, unless it is a replica or there are equal ones.
func (s *Store) inspect(ctx context.Context, n rueidis.Client, all []driver.Finding) ([]driver.Finding, error) {
	text, err := n.Do(ctx, n.B().Info().Build()).ToString()
	if err != nil {
		return nil, err
	}
	info := parseInfo(text)
	if info["role"] != "master" {
		return all, nil
	}
	found := s.judge(info)
	if fsync, err := n.Do(ctx, n.B().ConfigGet().Parameter("appendfsync").Build()).AsStrMap(); err == nil {
		found = append(found, judgeSync(info, fsync["appendfsync"])...)
	}
	for _, f := range found {
		if !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all, nil
}

// parseInfo reads the answer to INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// judge returns the findings that INFO shows.
func (s *Store) judge(info map[string]string) (found []driver.Finding) {
	find := func(severity driver.Severity, setting, problem, remedy string) {
		found = append(found, driver.Finding{Severity: severity, Setting: setting, Problem: problem, Remedy: remedy})
	}
	if policy := info["maxmemory_policy"]; strings.HasPrefix(policy, "allkeys-") {
		find(driver.Unsafe, "maxmemory-policy", "it is "+policy+": a full server removes records of living leaders, so there may never be "+
			"a leader for long", "CONFIG SET maxmemory-policy noeviction, or a policy volatile-*")
	}
	if info["aof_enabled"] == "0" {
		find(driver.Unsafe, "appendonly", "it is no: a server that restarts forgets records and the length of their leases, so members "+
			"with shorter leases may claim too early", "CONFIG SET appendonly yes, and in redis.conf")
	}
	replicas, _ := strconv.Atoi(info["connected_slaves"])
	switch {
	case replicas > 0 && s.set.wait == 0:
		find(driver.Unsafe, "wait", "replication is asynchronous: a promoted replica may lack a claim, and a partition may leave two "+
			"primaries, with a leader on each", fmt.Sprintf("give WithWait(%d), or ?wait=%[1]d, in all candidates", replicas))
	case replicas > s.set.wait:
		find(driver.Warning, "wait", fmt.Sprintf("it is %d, with %d replicas: one that lacks a write may be promoted", s.set.wait, replicas),
			fmt.Sprintf("give WithWait(%d), or ?wait=%[1]d, in all candidates", replicas))
	case replicas < s.set.wait:
		find(driver.Warning, "wait", fmt.Sprintf("it is %d, with %d replicas: no write succeeds until there are more", s.set.wait, replicas),
			"start the replicas, or give the number of all replicas")
	}
	return found
}

func judgeSync(info map[string]string, fsync string) []driver.Finding {
	if info["aof_enabled"] == "0" || fsync == "always" || fsync == "" {
		return nil
	}
	return []driver.Finding{{
		Severity: driver.Warning, Setting: "appendfsync",
		Problem: "it is " + fsync + ": a crash of the machine loses acknowledged writes; members then wait one lease, and the lost term " +
			"does not return unless the clock is behind",
		Remedy: "CONFIG SET appendfsync always, and in redis.conf",
	}}
}
