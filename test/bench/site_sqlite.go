package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/sqlstore"
	"github.com/tenure-go/tenure/test/internal/figures"
	_ "modernc.org/sqlite" // the driver sqlite
)

// fileMode has the requests of a healthy election: the leader's writes, and hardly any read, since
// the store itself looks at the file.
var fileMode = mode{requests: budget{"write": 12, "read": 1}}

var fileSite = site{
	name: "sqlite", title: "files of SQLite with pushes, WAL, synchronous=FULL",
	start:   func(_ *bench, dir string) servers { return directory(dir) },
	connect: func(o observer) (client, error) { return fileClient{o}, nil },
	rows: func() []experiment {
		modes, lease := []mode{fileMode}, choice[time.Duration]{2 * time.Second, 15 * time.Second}
		return []experiment{
			fresh{late: figures.Bound{Median: 50 * time.Millisecond}},
			crash{modes: modes, lease: always(5 * time.Second), groups: always(6), rounds: choice[int]{1, 10},
				late: figures.Bound{Median: 20 * time.Millisecond}},
			stops{lease: lease, of: []stopping{{mode: fileMode, rounds: choice[int]{40, 300}}},
				late: figures.Bound{Median: 25 * time.Millisecond}},
			steady{modes: modes, elections: 20, lease: lease, window: choice[int]{10, 20},
				note: "Calls of the store by the elections of each process"},
			crowd{modes: modes, elections: []int{1000}, window: choice[int]{5, 60}},
		}
	},
}

// directory holds one file for each bucket. Its path stands for the address of a server.
type directory string

func (d directory) addresses() []string { return []string{string(d)} }
func (d directory) stop()               {}

func (d directory) create(ctx context.Context, bucket string) {
	db := must(d.open(bucket))
	check(must(sqlstore.NewSQLite(db)).Create(ctx))
	check(db.Close())
}

// open opens a file as the command does.
func (d directory) open(bucket string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(string(d), bucket)+
		".db?_pragma=busy_timeout(1000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err == nil {
		db.SetMaxOpenConns(4)
		db.SetMaxIdleConns(2)
	}
	return db, err
}

type fileClient struct{ observer }

func (c fileClient) open(cmd command) (driver.Store, error) {
	db, err := directory(c.me.Addresses[0]).open(cmd.Bucket)
	if err != nil {
		return nil, err
	}
	s, err := sqlstore.NewSQLite(db, sqlstore.WithPristine())
	return fileObserved{s, c.observer, db}, err
}

type fileObserved struct {
	*sqlstore.SQLiteStore
	observer observer
	db       *sql.DB
}

// Close closes the file.
func (o fileObserved) Close() error { return o.db.Close() }

// CompareAndSwap calls the store and reports the write.
func (o fileObserved) CompareAndSwap(ctx context.Context, key string, prev driver.Version,
	value []byte) (driver.Version, error) {
	o.observer.count("write")
	return o.observer.swap(ctx, o.SQLiteStore, key, prev, value)
}

// Read calls the store, and reports how old the record looks if the command asks for that.
func (o fileObserved) Read(ctx context.Context, key string) (driver.Entry, error) {
	o.observer.count("read")
	return o.observer.read(ctx, o.SQLiteStore, key)
}
