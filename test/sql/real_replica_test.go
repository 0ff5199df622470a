//go:build integration

package sql

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// TestMariaDBReplicaIsAnotherEra: a replica that takes over may lack the last writes. So its rows
// are unproven, and versions of the former primary are refused.
func TestMariaDBReplicaIsAnotherEra(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	primary := sqld.StartMariaDB(t, "--server-id=1", "--log-bin", "--gtid-strict-mode")
	replica := sqld.StartMariaDB(t, "--server-id=2", "--log-bin", "--gtid-strict-mode")
	host, port, err := net.SplitHostPort(primary.Address())
	must(t, err)
	run(t, primary.Open(t, "root", ""), "CREATE DATABASE app")
	admin := primary.Open(t, "root", "app")
	s := open(t, admin, sqlstore.MySQL())
	inspect(t, "without replicas", s, map[string]driver.Severity{"sync_binlog": driver.Warning})
	run(t, admin, "SET GLOBAL sync_binlog = 1")
	inspect(t, "with a binary log that is synced", s, nil)
	follower := replica.Open(t, "root", "")
	run(t, follower, fmt.Sprintf("CHANGE MASTER TO master_host = '%s', master_port = %s, master_user = 'root', "+
		"master_use_gtid = slave_pos", host, port), "START SLAVE")
	first, err := s.CompareAndSwap(ctx, "k", "", []byte("first"))
	must(t, err)
	before, err := s.Read(ctx, "k")
	must(t, err)
	wait.Until(t, "the replica has the row", func() bool {
		var n int
		_ = follower.QueryRowContext(ctx, "SELECT count(*) FROM app.tenure").Scan(&n)
		return n == 1
	})
	inspect(t, "with a replica", s, map[string]driver.Severity{"rpl_semi_sync_master_enabled": driver.Advice})
	must(t, primary.Kill())
	run(t, follower, "STOP SLAVE", "RESET SLAVE ALL")
	next := over(t, replica.Open(t, "root", "app"), sqlstore.MySQL())
	after, err := next.Read(ctx, "k")
	if err != nil || !after.Unproven || after.Era == before.Era || before.Unproven || string(after.Value) != "first" {
		t.Errorf("before %+v, after %+v, %v: want the value, unproven, in another era", before, after, err)
	}
	if _, err := next.CompareAndSwap(ctx, "k", first, []byte("late")); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("a version of the former primary: got %v, want a conflict", err)
	}
	_, err = next.CompareAndSwap(ctx, "k", after.Version, []byte("next"))
	must(t, err)
	if e, err := next.Read(ctx, "k"); err != nil || e.Unproven || e.Floor <= before.Floor {
		t.Errorf("after a write: %+v, %v", e, err)
	}
	// The former primary takes over again, and lacks that write. Its row is of its own era.
	must(t, primary.Start())
	again := over(t, primary.Open(t, "root", "app"), sqlstore.MySQL())
	if e, err := again.Read(ctx, "k"); err != nil || !e.Unproven || e.Era != before.Era || string(e.Value) != "first" {
		t.Errorf("after a fail-back: %+v, %v: want the value, unproven", e, err)
	}
}

// TestLeaderGoesOnAfterAPromotion: if the standby has the claim of the leader, a promotion costs no
// leader.
func TestLeaderGoesOnAfterAPromotion(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	s := p.store()
	e, err := tenure.New(s, "billing", tenure.Config{ID: "a", Lease: time.Second})
	must(t, err)
	term, err := e.Campaign(t.Context()) // the first candidate waits for its lease
	must(t, err)
	must(t, term.Resign(t.Context()))
	// The long lease gives a slow machine time for the promotion.
	e, err = tenure.New(s, "billing", tenure.Config{ID: "b", Lease: 10 * time.Minute, Tuning: tenure.Tuning{Renew: time.Second}})
	must(t, err)
	term, err = e.Campaign(t.Context())
	must(t, err)
	p.separate(s, "billing")
	p.failOver()
	wait.Until(t, "the leader has renewed in the new era", func() bool {
		now, err := s.Read(t.Context(), "billing")
		return err == nil && !now.Unproven
	})
	if err := term.Err(); err != nil {
		t.Errorf("the leader: %v", err)
	}
	must(t, term.Resign(t.Context()))
}
