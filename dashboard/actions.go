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

// action is what the reader of the page asks for, with what the page showed: if that has changed
// since, nothing is done.
type action struct {
	key
	// Term is that of the leader to hand over, and To the candidate that should follow, or empty.
	Term uint64 `json:"term"`
	To   string `json:"to"`
	// Digest is that of the value to replace. Confirm is the election's name, typed. Lease is the
	// longest of any candidate.
	Digest  string `json:"digest"`
	Confirm string `json:"confirm"`
	Lease   int64  `json:"lease_ms"`
}

const (
	// actWithin bounds the store's part of an action. Servers often allow an answer 10 s.
	actWithin = 8 * time.Second
	// maxAction bounds the request, in bytes.
	maxAction = 16 << 10
)

// refusal is an error for which the reader can do something.
type refusal struct {
	code int
	why  string
}

func (r *refusal) Error() string { return r.why }

var (
	errOtherLeader = &refusal{http.StatusConflict, "another member leads by now: look again"}
	errOtherRecord = &refusal{http.StatusConflict, "the record has changed: look again"}
	errLeads       = &refusal{http.StatusConflict, "that member leads already"}
	errConfirm     = &refusal{http.StatusBadRequest, "the name that was typed is not the election's"}
	errLease       = &refusal{http.StatusBadRequest, "the lease is not from 1 ms to 1 h"}
	errNobody      = &refusal{http.StatusConflict, "nobody leads, so there is no leader to ask"}
	errSound       = &refusal{http.StatusConflict, "the record is sound: there is nothing to reset"}
	errDenied      = &refusal{http.StatusForbidden, "the dashboard may not write to the store"}
	// These leave open what was done.
	errSilent = &refusal{http.StatusGatewayTimeout, "the store did not answer in time"}
)

// deed carries out an action on an election of a source.
type deed func(context.Context, *source, *election, *action) error

// actions serves the actions, to requests of the page itself: a page of another origin cannot make
// them in its reader's name.
func (d *Dashboard) actions(m *http.ServeMux) {
	foreign := http.NewCrossOriginProtection()
	for name, do := range map[string]deed{"hand-over": handOver, "reset": reset} {
		m.Handle("POST /api/"+name, foreign.Handler(d.act(name, do)))
	}
}

func (d *Dashboard) act(name string, do deed) http.HandlerFunc {
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
		err = do(ctx, s, e, a)
		user, _, _ := r.BasicAuth()
		d.log.LogAttrs(ctx, level(err), "dashboard: "+name, slog.String("store", a.Source), slog.String("election", a.Name),
			slog.String("to", a.To), slog.String("user", user), slog.String("from", r.RemoteAddr), slog.Any("error", err))
		if err != nil {
			code, why := explain(err)
			refuse(w, code, why)
			return
		}
		answer(w, http.StatusOK, struct{}{})
	}
}

func level(err error) slog.Level {
	if err != nil {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// read reads a request. Forms of other pages cannot have its type.
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
		r = errNobody
	case errors.Is(err, admin.ErrSound):
		r = errSound
	case errors.Is(err, driver.ErrConflict):
		r = errOtherRecord
	case errors.Is(err, driver.ErrDenied):
		r = errDenied
	case errors.Is(err, context.DeadlineExceeded):
		r = errSilent
	default:
		return http.StatusBadGateway, err.Error()
	}
	return r.code, r.why
}

func handOver(ctx context.Context, s *source, e *election, a *action) error {
	if err := record.CheckName(a.To); err != nil {
		return &refusal{http.StatusBadRequest, "the candidate's " + err.Error()}
	}
	leader, term := e.leading()
	switch {
	case leader == "":
		return errNobody
	case term != a.Term:
		return errOtherLeader
	case leader == a.To:
		return errLeads
	}
	store := &confirmed{e.store, func(e driver.Entry) error {
		if r := records.Read(e); r.Held() && r.Term != a.Term {
			return errOtherLeader
		}
		return nil
	}}
	asker, err := tenure.New(store, e.key.Name, s.observing(e.store, s.clock, nil))
	if err != nil {
		return err
	}
	return asker.HandOver(ctx, a.To)
}

func reset(ctx context.Context, _ *source, e *election, a *action) error {
	seen := e.leaseSeen()
	switch {
	case a.Confirm != e.key.Name:
		return errConfirm
	case a.Lease < 1 || a.Lease > record.MaxLease.Milliseconds():
		return errLease
	case a.Lease < seen.Milliseconds():
		return &refusal{http.StatusBadRequest, fmt.Sprintf("a leader had a lease of %v, and may still be there: give that, or more", seen)}
	}
	store := &confirmed{e.store, func(e driver.Entry) error {
		if digest(e.Value) != a.Digest {
			return errOtherRecord
		}
		return nil
	}}
	_, err := admin.Reset(ctx, store, e.key.Name, time.Duration(a.Lease)*time.Millisecond)
	return err
}

// confirmed is a store whose entry must be the one that the reader saw.
type confirmed struct {
	driver.Store
	check func(driver.Entry) error
}

func (c *confirmed) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := c.Store.Read(ctx, key)
	if err == nil {
		err = c.check(e)
	}
	return e, err
}

// digest tells values apart, also those that read the same on the page.
func digest(value []byte) string {
	if len(value) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(value))
}

// readable is a value as the page shows it.
func readable(value []byte) string {
	return strings.ToValidUTF8(string(value[:min(len(value), maxText)]), "\uFFFD")
}
