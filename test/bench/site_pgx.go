package main

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/pgxstore"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// pushMode has the requests of a healthy election: the leader's writes, each with a read of what
// was written, one read of each follower in ten leases, and the pings of each process, which all of
// its elections share.
var pushMode = mode{requests: budget{"write": 12, "read": 12 + 0.5*(candidates-1), "ping": 4 * candidates / 20}}

var pushedSite = site{
	name: "pgx", title: "PostgreSQL with pushes, Debian's settings: fsync and synchronous_commit are on",
	start:   func(*bench, string) servers { return postgresServers{must(sqld.RunPostgres())} },
	connect: connectPushed,
	rows: func() []experiment {
		modes, lease := []mode{pushMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
		return []experiment{
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10},
				late: figures.Bound{Median: 25 * time.Millisecond}},
			crash{prefix: "busy-", modes: modes, lease: always(2 * time.Second), groups: always(8), rounds: choice[int]{1, 5},
				busy: 6, late: figures.Bound{Max: 200 * time.Millisecond}},
			stops{lease: lease, of: []stopping{{mode: pushMode, rounds: choice[int]{40, 300}}},
				late: figures.Bound{Median: 10 * time.Millisecond}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 20},
				note: "Statements as each process sends them, those of its listening connection too"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			outage{modes: modes, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
			crowd{modes: modes, elections: []int{1000}, window: choice[int]{5, 60}},
		}
	},
}

// pushedClient is one pool of connections, and the configuration of the connection that listens.
type pushedClient struct {
	sqlClient
	listen *pgx.ConnConfig
}

func connectPushed(o observer) (client, error) {
	cfg, err := pgx.ParseConfig("postgres://postgres@" + o.me.Addresses[0] + "/postgres")
	if err != nil {
		return nil, err
	}
	cfg.DialFunc, cfg.Tracer = o.me.DialContext, statementCounter(o)
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	return pushedClient{sqlClient{o, db, sqlstore.Postgres()}, cfg}, nil
}

func (c pushedClient) open(cmd command) (driver.Store, error) {
	s, err := pgxstore.New(c.db, c.listen, sqlstore.WithTable(cmd.Bucket))
	return pushedObserved{s, c.observer}, err
}

// statementCounter counts statements by their purpose.
type statementCounter observer

// TraceQueryStart counts a statement.
func (c statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	kind := "ping"
	switch {
	case strings.HasPrefix(data.SQL, "WITH written"):
		kind = "write"
	case strings.Contains(data.SQL, "LEFT JOIN"):
		kind = "read"
	}
	observer(c).count(kind)
	return ctx
}

// TraceQueryEnd does nothing.
func (statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

type pushedObserved struct {
	*pgxstore.Store
	observer observer
}

// CompareAndSwap calls the store and reports the write.
func (o pushedObserved) CompareAndSwap(ctx context.Context, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	return o.observer.swap(ctx, o.Store, key, prev, value)
}

// Read calls the store, and reports how old the record looks if the command asks for that.
func (o pushedObserved) Read(ctx context.Context, key string) (driver.Entry, error) {
	return o.observer.read(ctx, o.Store, key)
}
