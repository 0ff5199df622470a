// Command worker is a complete program to copy. Start it several times: one process at a time does
// the jobs in a table of PostgreSQL, and the others stand by. The database refuses the writes of a
// former leader. The program survives a restart of the database, and hands over when it is stopped.
//
//	DATABASE_URL=postgres://user@host/database go run . -listen localhost:8080
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/pgxstore"
)

func main() {
	listen := flag.String("listen", "localhost:8080", "the address for health checks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	if err := run(ctx, os.Getenv("DATABASE_URL"), *listen); err != nil {
		slog.Error("the worker has failed", "cause", err)
		os.Exit(1)
	}
}

// run takes part in the election until ctx ends. It then waits for the job that is under way, and
// releases the lease, so that another process leads at once. An error means that the program cannot
// begin: let a supervisor start it again.
func run(ctx context.Context, database, listen string) error {
	if database == "" {
		return errors.New("DATABASE_URL is not set; it must be a URL such as postgres://user@host/database")
	}
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return err
	}
	config.ConnectTimeout = 5 * time.Second
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	db.SetMaxIdleConns(4)
	store, err := pgxstore.New(db, config)
	if err != nil {
		return err
	}
	if err := create(ctx, store); err != nil || ctx.Err() != nil {
		return err
	}
	e, err := tenure.New(store, "worker", tenure.Config{Logger: slog.Default()})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: health(e), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(l) }() // until Close
	defer func() { _ = server.Close() }()
	w := worker{every: time.Second, begin: jobs(db)}
	return e.Run(ctx, w.lead)
}

// create makes the table of elections if it is missing. It tries again while the database is away,
// until ctx ends.
func create(ctx context.Context, store *pgxstore.Store) error {
	for {
		err := store.Create(ctx)
		if err == nil || errors.Is(err, tenure.ErrDenied) {
			return err
		}
		slog.Warn("the database cannot be used yet", "cause", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

// health answers whether this process could lead, and whether it does. Use it to see which
// processes are ready. It fails while the database is away, so do not restart a process for it.
func health(e *tenure.Election) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s := e.Status()
		if err := s.Health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, "%s, the leader is %q\n", s.State, s.Leader.ID)
	})
}
