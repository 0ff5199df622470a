package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/natsd"
	"github.com/tenure-go/tenure/test/internal/relay"
	"github.com/tenure-go/tenure/test/internal/sqld"
)

// server is the server with the election of a stage.
type server interface {
	// Start starts the server again, on its files and port.
	Start() error
	Kill() error
	Pause() error
	Resume() error
	// Address returns HOST:PORT.
	Address() string
	// store returns the value of --store for an address that leads to the server.
	store(address string) string
	End()
}

// kind is a kind of server. Start starts one, with its files in dir if the server allows it.
type kind struct {
	title string
	start func(dir string) (server, error)
}

// kinds holds the kinds of server by the value of the flag -store.
var kinds = map[string]kind{
	"nats": {"one NATS server process (file storage, one replica) over loopback and a relay for each candidate",
		func(dir string) (server, error) {
			s, err := natsd.Start(dir)
			return natsServer{s}, err
		}},
	"postgres": {"one PostgreSQL server (Debian's settings) over loopback and a relay for each candidate",
		func(string) (server, error) {
			s, err := sqld.RunPostgres()
			return postgresServer{s}, err
		}},
	"mariadb": {"one MariaDB server (its default settings) over loopback and a relay for each candidate",
		func(string) (server, error) {
			s, err := sqld.RunMariaDB()
			if err == nil {
				err = createDatabase(s)
			}
			return mariaServer{s}, err
		}},
	"sqlite": {"one SQLite file (WAL, synchronous=FULL)",
		func(dir string) (server, error) { return sqliteFile{filepath.Join(dir, "elections.db")}, nil }},
}

type natsServer struct{ *natsd.Server }

func (s natsServer) Kill() error     { s.Server.Kill(); return nil }
func (s natsServer) Pause() error    { return machine.Pause(s.PID()) }
func (s natsServer) Resume() error   { return machine.Resume(s.PID()) }
func (s natsServer) Address() string { return strings.TrimPrefix(s.URL(), "nats://") }
func (s natsServer) End()            { s.Server.Kill() }

func (s natsServer) store(address string) string {
	return "nats://" + address + "/" + bucket + "?pristine=true"
}

type postgresServer struct{ *sqld.Postgres }

func (postgresServer) store(address string) string {
	return "postgres://postgres@" + address + "/postgres"
}

type mariaServer struct{ *sqld.MariaDB }

func (mariaServer) store(address string) string { return "mysql://root@" + address + "/" + election }

func createDatabase(s *sqld.MariaDB) error {
	db, err := sql.Open("mysql", s.DSN("root", ""))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(context.Background(), "CREATE DATABASE "+election)
	return err
}

// sqliteFile stands for a server. Faults of networks and servers cannot happen to it.
type sqliteFile struct{ path string }

var errNoServer = errors.New("there is no server that this could happen to")

func (sqliteFile) Start() error          { return errNoServer }
func (sqliteFile) Kill() error           { return errNoServer }
func (sqliteFile) Pause() error          { return errNoServer }
func (sqliteFile) Resume() error         { return errNoServer }
func (sqliteFile) Address() string       { return "" }
func (f sqliteFile) store(string) string { return "sqlite:" + f.path }
func (sqliteFile) End()                  {}

// way starts the relay between a candidate and the server. It returns nil for SQLite.
func (s *stage) way() (*relay.Relay, error) {
	if s.server.Address() == "" {
		return nil, nil
	}
	return relay.New("nats://" + s.server.Address())
}
