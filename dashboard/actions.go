package dashboard

import (
	"context"
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
)

// action is what the reader of the page asks for, with what the page showed: if that has changed
// since, nothing is done.
type action struct {
	key
	// Term is that of the leader to hand over, and To the candidate that should follow, or empty.
	Term uint64 `json:"term"`
	To   string `json:"to"`
	// Text is the record to replace. Confirm is the election's name, typed. Lease is the longest
	// of any candidate.
	Text    string `json:"text"`
	Confirm string `json:"confirm"`
	Lease   int64  `json:"lease_ms"`
}

const (
	// actWithin bounds the store's part of an action. Servers often allow an answer 10 s.
	actWithin = 8 * time.Second
	// maxAction bounds the request, in bytes: it may hold a record, in which JSON escapes all.
	maxAction = 8*maxText + 4<<10
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
	errConfirm     = &refusal{http.StatusBadRequest, "the name that was typed is not the election's"}
	errNobody      = &refusal{http.StatusConflict, "nobody leads, so there is no leader to ask"}
	errSound       = &refusal{http.StatusConflict, "the record is sound: there is nothing to reset"}
	errDenied      = &refusal{http.StatusForbidden, "the dashboard may not write to the store"}
)

// actions serves the actions, to requests of the page itself: a page of another origin cannot make
// them in its reader's name.
func (d *Dashboard) actions(m *http.ServeMux) {
	foreign := http.NewCrossOriginProtection()
	for name, do := range map[string]func(context.Context, *election, *action) error{"hand-over": handOver, "reset": reset} {
		m.Handle("POST /api/"+name, foreign.Handler(d.act(name, do)))
	}
}

func (d *Dashboard) act(name string, do func(context.Context, *election, *action) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := read(w, r)
		if err != nil {
			refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		_, e := d.find(a.key)
		if e == nil {
			refuse(w, http.StatusNotFound, "there is no such election")
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), actWithin)
		defer cancel()
		err = do(ctx, e, a)
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
	default:
		return http.StatusBadGateway, err.Error()
	}
	return r.code, r.why
}

func handOver(ctx context.Context, e *election, a *action) error {
	if err := record.CheckName(a.To); err != nil {
		return &refusal{http.StatusBadRequest, "the candidate's " + err.Error()}
	}
	leader, term := e.leading()
	switch {
	case leader == "":
		return errNobody
	case term != a.Term:
		return errOtherLeader
	}
	return e.observed.HandOver(ctx, a.To)
}

func reset(ctx context.Context, e *election, a *action) error {
	if a.Confirm != e.key.Name {
		return errConfirm
	}
	if a.Text == "" {
		return errSound
	}
	_, err := admin.Reset(ctx, &confirmed{e.store, a.Text}, e.key.Name, time.Duration(a.Lease)*time.Millisecond)
	return err
}

// confirmed is a store whose record must be the one that the reader saw.
type confirmed struct {
	driver.Store
	text string
}

func (c *confirmed) Read(ctx context.Context, key string) (driver.Entry, error) {
	e, err := c.Store.Read(ctx, key)
	if err == nil && readable(e.Value) != c.text {
		return driver.Entry{}, errOtherRecord
	}
	return e, err
}

// readable is a record as the page gets it.
func readable(value []byte) string {
	return strings.ToValidUTF8(string(value[:min(len(value), maxText)]), "\uFFFD")
}
