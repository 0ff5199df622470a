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
	"slices"
	"strings"
	"sync"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/record"
)

// The limits of the report of one process, which may be faulty.
const (
	maxReport  = 1 << 20 // in bytes
	maxMembers = 10_000
	maxReason  = 1 << 10 // in bytes
)

// The ways in which a candidate is known, besides the terms that it has led.
const (
	Answered = "answered" // it answered over the store
	Reported = "reported" // its process reports it at a URL
)

// Once leaves out the reports of candidates that have also answered. The function of returns how an
// entry is known, and its incarnation.
func Once[T any](all []T, of func(T) (known, incarnation string)) []T {
	answered := map[string]bool{"": false}
	for _, one := range all {
		if known, incarnation := of(one); known == Answered && incarnation != "" {
			answered[incarnation] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(one T) bool {
		known, incarnation := of(one)
		return known == Reported && answered[incarnation]
	})
}

// maxReading is how many reports are read at once.
const maxReading = 32

// ReadAll reads the reports of all processes that the URLs stand for now. It calls found with the
// addresses of each URL, or with the reason why they are not known, and took with the report at
// each address, or with the reason why there is none. The calls of took may be concurrent.
func ReadAll(
	ctx context.Context, client *http.Client, urls []string, wanted func(election string) bool,
	found func(url string, at []Address, err error), took func(at Address, all []tenure.Member, err error),
) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	slots := make(chan struct{}, maxReading)
	for _, url := range urls {
		at, err := Resolve(ctx, url)
		found(url, at, err)
		for _, one := range at {
			slots <- struct{}{}
			tasks.Go(func() {
				defer func() { <-slots }()
				all, err := Read(ctx, client, one, wanted)
				took(one, all, err)
			})
		}
	}
}

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
