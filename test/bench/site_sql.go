package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// sqlMode is the only mode of a polled database. The leader reads back each of its writes.
var sqlMode = mode{polled: true, requests: budget{"UPDATE": 12, "SELECT": 12 + 4*(candidates-1), total: 60}}

var postgresSite = site{
	name: "postgres", title: "PostgreSQL, Debian's settings: fsync and synchronous_commit are on",
	start:   func(*bench, string) servers { return postgresServers{must(sqld.RunPostgres())} },
	connect: connectSQL(sqlstore.Postgres, dialPostgres),
	rows:    sqlRows(`"`, "UPDATE %s SET value = $1, version = $2 WHERE name = $3 AND version = $4"),
}

var mariaSite = site{
	name: "mariadb", title: "MariaDB, default settings: innodb_flush_log_at_trx_commit is 1",
	start:   startMariaDB,
	connect: connectSQL(sqlstore.MySQL, dialMariaDB),
	rows:    sqlRows("`", "UPDATE %s SET value = ?, version = ? WHERE name = ? AND version = ?"),
}

func sqlRows(quote, update string) func() []experiment {
	modes, lease := []mode{sqlMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
	return func() []experiment {
		return []experiment{
			bare{quote: quote, update: update, n: choice[int]{300, 3000}},
			crash{modes: modes, elections: 30, lease: lease, groups: choice[int]{1, 2}, rounds: always(1)},
			stops{lease: lease, of: []stopping{{mode: sqlMode, elections: choice[int]{40, 100}, rounds: always(1)}}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{4, 8},
				note: "Statements as each process sends them"},
			cut(strike{modes: modes, lease: 2 * time.Second, groups: always(5), rounds: choice[int]{1, 10}}),
			outage{modes: modes, elections: 20, lease: 2 * time.Second, rounds: choice[int]{1, 3}},
		}
	}
}

type postgresServers struct{ *sqld.Postgres }

func (p postgresServers) addresses() []string { return []string{p.Address()} }
func (p postgresServers) stop()               { p.End() }

func (p postgresServers) create(ctx context.Context, table string) {
	createTable(ctx, must(sql.Open("pgx", p.DSN("postgres", "postgres"))), sqlstore.Postgres(), table)
}

type mariaServers struct{ *sqld.MariaDB }

func startMariaDB(b *bench, _ string) servers {
	m := must(sqld.RunMariaDB())
	db := must(sql.Open("mysql", m.DSN("root", "")))
	must(db.ExecContext(b.ctx, "CREATE DATABASE bench"))
	check(db.Close())
	return mariaServers{m}
}

func (m mariaServers) addresses() []string { return []string{m.Address()} }
func (m mariaServers) stop()               { m.End() }

func (m mariaServers) create(ctx context.Context, table string) {
	createTable(ctx, must(sql.Open("mysql", m.DSN("root", "bench"))), sqlstore.MySQL(), table)
}

func createTable(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect, table string) {
	check(must(sqlstore.New(db, dialect, sqlstore.WithTable(table))).Create(ctx))
	check(db.Close())
}

// sqlClient is one pool of connections.
type sqlClient struct {
	observer
	db      *sql.DB
	dialect sqlstore.Dialect
}

func connectSQL(dialect func() sqlstore.Dialect, dial func(identity) (*sql.DB, error)) func(observer) (client, error) {
	return func(o observer) (client, error) {
		db, err := dial(o.me)
		if err != nil {
			return nil, err
		}
		db.SetMaxIdleConns(4)
		return sqlClient{o, db, dialect()}, nil
	}
}

func dialPostgres(me identity) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig("postgres://postgres@" + me.Addresses[0] + "/postgres")
	if err != nil {
		return nil, err
	}
	cfg.DialFunc = me.DialContext
	return stdlib.OpenDB(*cfg), nil
}

func dialMariaDB(me identity) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = "root", "tcp", me.Addresses[0], "bench"
	cfg.DialFunc = me.DialContext
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func (c sqlClient) open(cmd command) (driver.Store, error) {
	s, err := sqlstore.New(c.db, c.dialect, sqlstore.WithTable(cmd.Bucket))
	return sqlObserved{s, c.observer}, err
}

type sqlObserved struct {
	*sqlstore.Store
	observer observer
}

// CompareAndSwap calls the store, and reports the write and the read that confirms it.
func (o sqlObserved) CompareAndSwap(ctx context.Context, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	o.observer.count("UPDATE")
	v, err := o.observer.swap(ctx, o.Store, key, prev, value)
	if err == nil {
		o.observer.count("SELECT")
	}
	return v, err
}

// Read calls the store, and reports how old the record looks if the command asks for that.
func (o sqlObserved) Read(ctx context.Context, key string) (driver.Entry, error) {
	o.observer.count("SELECT")
	return o.observer.read(ctx, o.Store, key)
}

// bare compares the store's operations with a bare UPDATE.
type bare struct {
	quote, update string
	n             choice[int]
}

func (bare) about() about {
	return about{"store", "single operations of the store, and a bare UPDATE of the same row that names its version",
		"From the call to its return, one after another on one pool, the operations in turn; 300 bytes"}
}

// most bounds the time of a compare-and-swap, as a multiple of its two statements: a bare UPDATE,
// and the read that confirms it.
const most = 1.3

func (x bare) measure(t *trial) {
	on, table := t.shared(), t.unique("store")
	on.create(t.ctx, table)
	db := must(t.site.connect(observer{me: identity{Addresses: on.addresses()}})).(sqlClient)
	defer func() { _ = db.db.Close() }()
	s := must(sqlstore.New(db.db, db.dialect, sqlstore.WithTable(table)))
	quoted := x.quote + table + x.quote
	update := fmt.Sprintf(x.update, quoted)
	version, value := must(s.CompareAndSwap(t.ctx, "cell", "", make([]byte, 300))), make([]byte, 300)
	must(s.CompareAndSwap(t.ctx, "bare", "", value))
	must(db.db.ExecContext(t.ctx, "UPDATE "+quoted+" SET version = '0' WHERE name = 'bare'"))
	var reads, swaps, bares figures.Dist
	for i := range pick(t.bench, x.n) {
		began := time.Now()
		version = must(s.CompareAndSwap(t.ctx, "cell", version, value))
		swapped := time.Now()
		must(s.Read(t.ctx, "cell"))
		read := time.Now()
		result := must(db.db.ExecContext(t.ctx, update, value, fmt.Sprint(i+1), "bare", fmt.Sprint(i)))
		if must(result.RowsAffected()) != 1 {
			check(fmt.Errorf("update %d wrote no row", i))
		}
		swaps, reads, bares = append(swaps, swapped.Sub(began)), append(reads, read.Sub(swapped)), append(bares, time.Since(read))
	}
	limit := figures.Bound{Median: time.Duration(most * float64(bares.Median()+reads.Median()))}
	t.report(timed("Read", reads, figures.Bound{}, ""), timed("CompareAndSwap", swaps, limit, ""),
		timed("a bare UPDATE", bares, figures.Bound{}, ""))
}
