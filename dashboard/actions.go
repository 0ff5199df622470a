package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/admin"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/records"
)

// action is a request of the page's reader. It includes the state that the page showed: if that has
// changed since, nothing is done.
type action struct {
	key
	// Term is the term of the leader that should hand over. To is the wanted successor, or empty.
	// With Force, the leader leaves even if To does not accept.
	Term  uint64 `json:"term"`
	To    string `json:"to"`
	Force bool   `json:"force"`
	// Digest is the digest of the value to replace. Confirm is the election's name, which the
	// reader has typed. Lease is the longest lease of any candidate.
	Digest  string `json:"digest"`
	Confirm string `json:"confirm"`
	Lease   int64  `json:"lease_ms"`

	user string // who asks, as typed at the login; empty without one
}

const (
	// actWithin bounds the store's part of an action. Servers often allow an answer 10 s.
	actWithin = 8 * time.Second
	// maxAction bounds the request, in bytes.
	maxAction = 16 << 10
)

// refusal is an error with an HTTP status and a text for the reader.
type refusal struct {
	code int
	why  string
}

func (r *refusal) Error() string { return r.why }

var (
	errLeaderChanged  = &refusal{http.StatusConflict, "another member leads by now: look again"}
	errRecordChanged  = &refusal{http.StatusConflict, "the record has changed: look again"}
	errAlreadyLeads   = &refusal{http.StatusConflict, "that member leads already"}
	errWrongName      = &refusal{http.StatusBadRequest, "the name that was typed is not the election's"}
	errBadLease       = &refusal{http.StatusBadRequest, "the lease is not from 1 ms to 1 h"}
	errNoLeader       = &refusal{http.StatusConflict, "nobody leads, so there is no leader to ask"}
	errNothingToReset = &refusal{http.StatusConflict, "the record is sound: there is nothing to reset"}
	errDenied         = &refusal{http.StatusForbidden, "the dashboard may not write to the store"}
	// After this one, the action may have been done.
	errNoAnswer = &refusal{http.StatusGatewayTimeout, "the store did not answer in time"}
)

// actionFunc carries out an action on an election of a source.
type actionFunc func(context.Context, *source, *election, *action) error

// actions serves the actions, and only to requests of the page itself: a page of another origin
// cannot send them on behalf of its reader (CSRF).
func (d *Dashboard) actions(m *http.ServeMux) {
	foreign := http.NewCrossOriginProtection()
	for name, do := range map[string]actionFunc{"hand-over": handOver, "reset": reset} {
		m.Handle("POST /api/"+name, foreign.Handler(d.act(name, do)))
	}
}

func (d *Dashboard) act(name string, do actionFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := read(w, r)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		s, e := d.find(a.key)
		if e == nil {
			refuse(w, http.StatusNotFound, "there is no such election")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), actWithin)
		defer cancel()
		a.user, _, _ = r.BasicAuth()
		err = do(ctx, s, e, a)
		level := slog.LevelInfo
		if err != nil {
			level = slog.LevelWarn
		}
		d.log.LogAttrs(ctx, level, "dashboard: "+name, slog.String("store", a.Source), slog.String("election", a.Name), slog.String("to", a.To),
			slog.Bool("force", a.Force), slog.String("user", a.user), slog.String("from", r.RemoteAddr), slog.Any("error", err))
		if err != nil {
			code, why := explain(err)
			refuse(w, code, why)
			return
		}
		answer(w, http.StatusOK, struct{}{})
	}
}

// read reads a request. It requires the type JSON, which a form of another page cannot send.
func read(w http.ResponseWriter, r *http.Request) (*action, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, errors.New("the request is not JSON")
	}
	var a action
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAction)).Decode(&a); err != nil {
		return nil, fmt.Errorf("the request is no action: %w", err)
	}
	return &a, nil
}

func explain(err error) (code int, why string) {
	var r *refusal
	switch {
	case errors.As(err, &r):
	case errors.Is(err, tenure.ErrNoLeader):
		r = errNoLeader
	case errors.Is(err, admin.ErrSound):
		r = errNothingToReset
	case errors.Is(err, driver.ErrConflict):
		r = errRecordChanged
	case errors.Is(err, driver.ErrDenied):
		r = errDenied
	case errors.Is(err, context.DeadlineExceeded):
		r = errNoAnswer
	default:
		return http.StatusBadGateway, err.Error()
	}
	return r.code, r.why
}

func handOver(ctx context.Context, s *source, e *election, a *action) error {
	if err := record.CheckName(a.To); err != nil {
		return &refusal{http.StatusBadRequest, "the candidate's " + err.Error()}
	}
	leader, term := e.leader()
	switch {
	case leader == "":
		return errNoLeader
	case term != a.Term:
		return errLeaderChanged
	case leader == a.To:
		return errAlreadyLeads
	}
	store := &checkedStore{e.store, func(e driver.Entry) error {
		if r := records.Read(e); r.Held() && r.Term != a.Term {
			return errLeaderChanged
		}
		return nil
	}}
	cfg := s.observerConfig(e.store, nil)
	if a.user != "" && record.CheckName(a.user) == nil {
		cfg.ID = a.user
	}
	asker, err := tenure.New(store, e.key.Name, cfg)
	if err != nil {
		return err
	}
	if a.Force {
		return asker.ForceHandOver(ctx, a.To)
	}
	return asker.HandOver(ctx, a.To)
}

func reset(ctx context.Context, _ *source, e *election, a *action) error {
	seen := e.leaseSeen()
	switch {
	case a.Confirm != e.key.Name:
		return errWrongName
	case a.Lease < 1 || a.Lease > record.MaxLease.Milliseconds():
		return errBadLease
	case a.Lease < seen.Milliseconds():
		return &refusal{http.StatusBadRequest, fmt.Sprintf("a leader had a lease of %v, and may still be there: give that, or more", seen)}
	}
	store := &checkedStore{e.store, func(e driver.Entry) error {
		if digest(e.Value) != a.Digest {
			return errRecordChanged
		}
		return nil
	}}
	_, err := admin.Reset(ctx, store, e.key.Name, time.Duration(a.Lease)*time.Millisecond)
	return err
}

// checkedStore is a store whose reads fail unless the entry passes check.
type checkedStore struct {
	driver.Store
	check func(driver.Entry) error
}

// Abilities returns those of the store without pushes, which would pass by the check, and without
// its longest lease, which need not fit the dashboard's.
func (c *checkedStore) Abilities() driver.Abilities {
	a := driver.AbilitiesOf(c.Store)
	a.Watcher, a.Peers = nil, nil
	if a.Bounded != nil {
		a.Bounded = records.AnyLease{Bounded: a.Bounded}
	}
	return a
}

func (c *checkedStore) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := c.Store.Read(ctx, key)
	if err == nil {
		err = c.check(e)
	}
	return e, err
}

// digest distinguishes values, also those that look the same on the page.
func digest(value []byte) string {
	if len(value) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(value))
}

// readable returns a value as the page shows it.
func readable(value []byte) string {
	return strings.ToValidUTF8(string(value[:min(len(value), maxText)]), "\uFFFD")
}
