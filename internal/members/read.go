// Package members reads, for people, what the processes of an election say of their candidates.
// Each process says what it likes, so everything is bounded, and no decision depends on it.
package members

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/record"
)

// The limits of the report of one process, which may be faulty.
const (
	maxReport  = 1 << 20 // in bytes
	maxMembers = 10_000
	maxReason  = 1 << 10 // in bytes
)

// Read requests the report at an address, see dashboard.Report. Members of elections that are not
// wanted are left out. The client should follow no redirect.
func Read(ctx context.Context, client *http.Client, at Address, wanted func(election string) bool) ([]tenure.Member, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL, nil)
	if err != nil {
		return nil, err
	}
	request.Host = at.Host
	answer, err := client.Do(request)
	if err != nil {
		return nil, reason(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(fmt.Sprint(answer.StatusCode, " ", http.StatusText(answer.StatusCode))))
	}
	return decode(json.NewDecoder(io.LimitReader(answer.Body, maxReport)), wanted)
}

func decode(from *json.Decoder, wanted func(election string) bool) ([]tenure.Member, error) {
	if begin, err := from.Token(); err != nil || begin != json.Delim('[') {
		return nil, errors.New("it is no report: it does not begin with [")
	}
	var all []tenure.Member
	for from.More() {
		var m tenure.Member
		if err := from.Decode(&m); err != nil {
			return nil, fmt.Errorf("it is no report: %w", err)
		}
		if !wanted(m.Election) {
			continue
		}
		if err := check(&m); err != nil {
			return nil, fmt.Errorf("it is no report: %w", err)
		}
		if all = append(all, m); len(all) > maxMembers {
			return nil, fmt.Errorf("it reports more than %d members", maxMembers)
		}
	}
	if _, err := from.Token(); err != nil {
		return nil, fmt.Errorf("it is no report: %w", err)
	}
	return all, nil
}

// Answers returns the candidates that have answered, see driver.Presence. What is no Member of a
// wanted election is left out.
func Answers(texts [][]byte, wanted func(election string) bool) []tenure.Member {
	var all []tenure.Member
	for _, text := range texts[:min(len(texts), maxMembers)] {
		var m tenure.Member
		if json.Unmarshal(text, &m) == nil && wanted(m.Election) && check(&m) == nil {
			all = append(all, m)
		}
	}
	return all
}

// check returns an error if a text is too long, and shortens the problem.
func check(m *tenure.Member) error {
	if err := errors.Join(record.CheckName(m.ID), record.CheckName(string(m.State))); err != nil {
		return fmt.Errorf("an ID or a state %w", err)
	}
	if err := errors.Join(record.CheckName(m.Address), record.CheckName(m.Incarnation)); err != nil {
		return fmt.Errorf("an address %w", err)
	}
	m.Problem = Shortened(m.Problem)
	return nil
}

// Shortened shortens a reason that another process gave.
func Shortened(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// reason returns the error without the address, which may hold a password.
func reason(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
