package pgxstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrPooled reports that a pooler is between client and server, so the store cannot listen.
	ErrPooled = errors.New("a pooler is in between, where LISTEN does not work: " +
		"give the address of the server itself for listening")

	// ErrElsewhere reports that the connection that listens leads to another table than the pool,
	// or to a standby or former primary of its server.
	ErrElsewhere = errors.New("the connection for listening leads to another database than the pool")
)

const (
	// A ping checks that the connection lives, and that the pool writes where it listens: one small
	// query on each. It comes after a silence, which is longer than leaders with a lease of 15 s
	// are silent, and also from time to time.
	pingAfter = 6 * time.Second
	pingEvery = 30 * time.Second
	// answerWithin bounds a ping, and the attempt to connect where the configuration sets none.
	answerWithin = 5 * time.Second
)

// listener makes connections that listen.
type listener struct {
	config *pgx.ConnConfig
	before func(context.Context, *pgx.ConnConfig) error
	query  string  // names the channel
	db     *sql.DB // the pool that writes
}

func listenerConfig(c *pgx.ConnConfig) *pgx.ConnConfig {
	c = c.Copy()
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = answerWithin
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec // it has a handful of statements
	return c
}

// line is a connection that listens.
type line struct {
	conn    *pgx.Conn
	query   string
	channel string
}

// open connects and listens. It asks who serves the connection before it listens: a LISTEN on a
// pooled session would stay there for other clients.
func (l *listener) open(ctx context.Context) (*line, error) {
	config := l.config.Copy()
	if err := l.before(ctx, config); err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	n := &line{conn: conn, query: l.query}
	if err = l.begin(ctx, n); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (l *listener) begin(ctx context.Context, n *line) error {
	var pid uint32
	if err := n.conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	if pid != n.conn.PgConn().PID() {
		return ErrPooled
	}
	if err := l.db.QueryRowContext(ctx, l.query).Scan(&n.channel); err != nil {
		return err
	}
	if err := n.checkChannel(ctx, n.channel); err != nil {
		return err
	}
	_, err := n.conn.Exec(ctx, "LISTEN "+pgx.Identifier{n.channel}.Sanitize())
	return err
}

// checkChannel returns an error unless the connection is alive, and its table notifies on this
// channel.
func (n *line) checkChannel(ctx context.Context, channel string) error {
	var its string
	if err := n.conn.QueryRow(ctx, n.query).Scan(&its); err != nil {
		return err
	}
	if its != channel {
		return ErrElsewhere
	}
	return nil
}

// ping returns an error if the connection is lost, or if the pool now writes to another database or
// table. A promotion changes the channel, and so does a table that is recreated. While the pool
// does not answer, the line stays.
func (l *listener) ping(ctx context.Context, n *line) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := n.checkChannel(ctx, n.channel); err != nil {
		return err
	}
	var written string
	if err := l.db.QueryRowContext(ctx, l.query).Scan(&written); err == nil && written != n.channel {
		return ErrElsewhere
	}
	return nil
}

// next returns the payload of the next notification, or false if there was none until then.
func (n *line) next(ctx context.Context, until time.Time) (string, bool, error) {
	wait, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	note, err := n.conn.WaitForNotification(wait)
	switch {
	case err == nil:
		return note.Payload, true, nil
	case ctx.Err() == nil && pgconn.Timeout(err) && !n.conn.IsClosed():
		return "", false, nil
	}
	return "", false, err
}

func (n *line) close() {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	_ = n.conn.Close(ctx)
}
