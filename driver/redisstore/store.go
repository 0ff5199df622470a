package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/seal"
	"github.com/tenure-go/tenure/driver/watches"
)

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Bounded   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Store is the elections under one prefix of a server, or of the primary behind Sentinel, or of a
// Cluster. It must be made by Open, and closed. Its methods may be called from many goroutines.
type Store struct {
	client rueidis.Client
	set    settings
	calls  abandon.Calls
	hub    *watches.Hub
	// seats holds a token for each script that is running, and room for one per connection. It is
	// nil in a Cluster, where each server has connections of its own.
	seats chan struct{}
}

// Read returns the state of the cell. The caller may keep the value; if it is longer than
// driver.MaxValue, it is the first driver.MaxValue + 1 bytes. Floor is the larger of the hash's
// floor and the server's clock in microseconds. With [WithWait], Read returns a state only if the
// replicas have it.
//
// It returns an error that wraps driver.ErrDenied if rights or valid credentials are missing, one
// that wraps driver.ErrPoolBusy if all connections are in use (in a Cluster, the context's error),
// the error of CheckKey, and any other error if the state is not known. A replica returns an error.
func (s *Store) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := s.read(ctx, key)
	if err != nil {
		return driver.Entry{}, fmt.Errorf("redisstore: read %s: %w", s.place(key), explain(err))
	}
	return e, nil
}

func (s *Store) read(ctx context.Context, key string) (driver.Entry, error) {
	if err := s.CheckKey(key); err != nil {
		return driver.Entry{}, err
	}
	c := call{script: readScript, key: s.set.prefix + key, args: []string{strconv.Itoa(driver.MaxValue + 1)}}
	if s.set.wait > 0 {
		c.script, c.writes = touchScript, true
	}
	answer, err := s.run(ctx, c)
	if err != nil {
		return driver.Entry{}, err
	}
	read, err := parseCell(answer)
	if err != nil {
		return driver.Entry{}, err
	}
	return read.entry(key), nil
}

// CompareAndSwap replaces the state of the cell with value if its version is still prev, and
// returns the version of the new state. The caller may reuse the value. A version that was read in
// another era is a conflict.
//
// It returns an error that wraps driver.ErrConflict if the version or the era was different, one
// that wraps driver.ErrDenied if rights or valid credentials are missing, and the error of
// CheckKey, when nothing was sent. Any other error leaves open whether the value was or will be
// written: among them, with [WithWait], that too few replicas have it.
func (s *Store) CompareAndSwap(
	ctx context.Context, key string, prev driver.Version, value []byte,
) (driver.Version, error) {
	v, err := s.swap(ctx, key, prev, value)
	if err != nil {
		return "", fmt.Errorf("redisstore: compare and swap %s: %w", s.place(key), explain(err))
	}
	return v, nil
}

func (s *Store) swap(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	if err := s.CheckKey(key); err != nil {
		return "", err
	}
	was, stamp := parseVersion(prev), seal.New(key, value)
	answer, err := s.run(ctx, call{writes: true, script: writeScript, key: s.set.prefix + key, args: []string{
		s.set.channel(), key, was.stamp, was.era, stamp, string(bytes.Clone(value)),
		strconv.Itoa(highest), strconv.Itoa(latest),
	}})
	switch {
	case err != nil:
		return "", err
	case len(answer) == 0:
		return "", driver.ErrConflict
	}
	return version{stamp, answer[0]}.version(), nil
}

// run runs a script once, and with WithWait waits for the replicas.
func (s *Store) run(ctx context.Context, c call) ([]string, error) {
	c.args = append(c.args, strconv.Itoa(s.set.wait))
	var queued atomic.Bool
	answer, err := abandon.Run(ctx, &s.calls, func() ([]string, error) {
		leave, err := s.sit(ctx, &queued)
		if err != nil {
			return nil, err
		}
		defer leave()
		if s.set.wait > 0 && c.writes && c.script != rightsScript {
			return s.replicated(ctx, c)
		}
		return texts(s.client.Do(ctx, c.command(s.client.B())))
	}, abandon.NoUndo)
	if queued.Load() && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: all %d are in use: %w", driver.ErrPoolBusy, cap(s.seats), err)
	}
	if s.set.wait > 0 && Code(err) == "NOREPLICAS" {
		err = fmt.Errorf("%w: %w", ErrReplicas, err)
	}
	return answer, err
}

// sit waits until fewer scripts run than there are connections, and keeps in queued whether it
// still waits. Its caller sends nothing if the context ends before.
func (s *Store) sit(ctx context.Context, queued *atomic.Bool) (leave func(), err error) {
	if s.seats == nil {
		return func() {}, nil
	}
	leave = func() { <-s.seats }
	select {
	case s.seats <- struct{}{}:
		return leave, nil
	default:
	}
	queued.Store(true)
	select {
	case s.seats <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	queued.Store(false)
	if err := ctx.Err(); err != nil { // run may have read queued
		leave()
		return nil, err
	}
	return leave, nil
}

// ErrReplicas reports that fewer replicas than WithWait demands have acknowledged a state in time.
// Others may have it, or get it later.
var ErrReplicas = errors.New("too few replicas have acknowledged")

// replicated runs a script and WAIT on one connection, in one round trip. It never follows a server
// to another one: there, WAIT would not wait for the script.
func (s *Store) replicated(ctx context.Context, c call) (answer []string, err error) {
	err = s.client.Dedicated(func(conn rueidis.DedicatedClient) error {
		wait := conn.B().Wait().Numreplicas(int64(s.set.wait)).Timeout(patience(ctx).Milliseconds()).Build()
		// The offset that WAIT compares is that of the script only while the era is the same.
		after := conn.B().Info().Section("replication").Build()
		results := conn.DoMulti(ctx, c.command(conn.B()), wait, after)
		if answer, err = texts(results[0]); err != nil || len(answer) == 0 {
			return err
		}
		n, failed := results[1].AsInt64()
		switch {
		case Code(failed) != "": // the text alone: the script was not refused
			return fmt.Errorf("%w: WAIT: %s", ErrReplicas, failed.Error())
		case failed != nil:
			return failed
		case n < int64(s.set.wait):
			return fmt.Errorf("%w: %d of %d", ErrReplicas, n, s.set.wait)
		}
		text, failed := results[2].ToString()
		info := parseInfo(text)
		if failed != nil || info["role"] != "master" || info["master_replid"] != answer[0] {
			return fmt.Errorf("%w: the server was demoted or promoted meanwhile", ErrReplicas)
		}
		return nil
	})
	return answer, err
}

// patience is the time for WAIT: less than the caller has, so that it learns the reason.
func patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return waitAtMost
	}
	return min(waitAtMost, max(time.Until(deadline)*3/4, time.Millisecond))
}

// waitAtMost bounds WAIT where the context has no deadline.
const waitAtMost = 5 * time.Second

// place formats a key for a message.
func (s *Store) place(key string) string { return fmt.Sprintf("key %.200q", s.set.prefix+key) }

// minLease is many times as long as a server needs for a write, with a margin for a slow disk.
const minLease = 500 * time.Millisecond

// MinLease returns 500 ms.
func (s *Store) MinLease() time.Duration { return minLease }

// MaxLease returns 1 h, as for any store without a limit of its own.
func (s *Store) MaxLease() time.Duration { return driver.MaxLease }

// maxKey is the longest key in bytes, without the prefix.
const maxKey = 255

// CheckKey returns an error unless the key is UTF-8 text of 1 to 255 bytes without control
// characters.
func (s *Store) CheckKey(key string) error { return driver.CheckText(key, maxKey) }

// Limits returns the limits of leases and keys in every place. It sends nothing.
func Limits() driver.Bounded { return (*Store)(nil) }

// CheckRights returns an error that wraps driver.ErrDenied if a right to write the key or to
// publish is missing, and any other error if there was no answer or the server is a replica. Its
// script writes nothing.
func (s *Store) CheckRights(ctx context.Context, key string) error {
	err := s.CheckKey(key)
	if err == nil {
		_, err = s.run(ctx, call{
			writes: true, script: rightsScript, key: s.set.prefix + key, args: []string{s.set.channel()},
		})
	}
	if err != nil {
		return fmt.Errorf("redisstore: check the right to write %s: %w", s.place(key), explain(err))
	}
	return nil
}

// Keys returns the sorted keys of all hashes under the prefix. It asks for them in steps (SCAN), in
// a Cluster on each server. Errors are as for Read.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	all, err := abandon.Run(ctx, &s.calls, func() (all []string, err error) {
		for _, n := range s.nodes() {
			if all, err = s.scan(ctx, n, all); err != nil {
				return nil, err
			}
		}
		return all, nil
	}, abandon.NoUndo)
	if err != nil {
		return nil, fmt.Errorf("redisstore: list the keys under %q: %w", s.set.prefix, explain(err))
	}
	slices.Sort(all)
	return slices.Compact(all), nil // SCAN may return a key twice
}

// glob matches the characters that have a meaning in a pattern of SCAN.
var glob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

func (s *Store) scan(ctx context.Context, n rueidis.Client, all []string) ([]string, error) {
	for cursor := uint64(0); ; {
		page, err := n.Do(ctx, n.B().Scan().Cursor(cursor).Match(glob.Replace(s.set.prefix)+"*").Count(1000).Type("hash").Build()).AsScanEntry()
		if err != nil {
			return nil, err
		}
		for _, name := range page.Elements {
			if key := strings.TrimPrefix(name, s.set.prefix); s.CheckKey(key) == nil {
				all = append(all, key)
			}
		}
		if cursor = page.Cursor; cursor == 0 {
			return all, nil
		}
	}
}

// Close ends all watches and closes the connections. It returns nil. It may be called more than
// once, but not from a function that was given to Watch.
func (s *Store) Close() error {
	s.hub.Close()
	s.client.Close()
	return nil
}
