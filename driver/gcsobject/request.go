package gcsobject

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/abandon"
	"github.com/tenure-go/tenure/driver/object"
)

// errNoGeneration leaves the outcome of a write open: it was accepted, but its version cannot be
// named.
var errNoGeneration = fmt.Errorf("%w: it has no generation; a proxy may remove it; let it pass, or go past the proxy", object.ErrNoVersion)

// AnswerError is an answer by which the server refused a request, or failed.
type AnswerError struct {
	// Status is that of HTTP.
	Status int
	// Reason is Google's word for it, such as rateLimitExceeded; it may be empty.
	Reason string
	// Message is the server's text.
	Message string
}

// Error returns the status, the reason and the text.
func (e *AnswerError) Error() string {
	return strings.TrimRight(fmt.Sprintf("%d %s: %s", e.Status, e.Reason, e.Message), ": ")
}

// request is one request to the JSON interface.
type request struct {
	method      string
	path        string // behind the endpoint, escaped
	query       url.Values
	contentType string
	body        []byte
	most        int64 // bytes of the answer that are read
}

// answer is the answer to a request that was carried out.
type answer struct {
	header http.Header
	body   []byte
}

// maxAnswer bounds the answers that are JSON: a page of a list has 1,000 names.
const maxAnswer = 4 << 20

// send makes a request once. An answer other than 2xx is an *AnswerError.
func (s *Store) send(ctx context.Context, q request) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, s.endpoint+q.path+"?"+q.query.Encode(), bytes.NewReader(q.body))
	if err != nil {
		return answer{}, err
	}
	if q.contentType != "" {
		r.Header.Set("Content-Type", q.contentType)
	}
	r.Header.Set("Accept-Encoding", "identity") // the bytes as they are stored
	r.Header.Set("User-Agent", "tenure")
	token, err := s.tokens.Sign(ctx, r)
	if err != nil {
		return answer{}, err
	}
	// A client of package oauth2 waits for its access token without the context.
	do := func() (*http.Response, error) { return s.client.Do(r) }
	response, err := abandon.Run(ctx, &s.calls, do, func(late *http.Response) { _ = late.Body.Close() })
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	most := max(q.most, maxMessage)
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	a := answer{response.Header, body}
	if response.StatusCode == http.StatusUnauthorized {
		return a, s.tokens.Refused(token, failure(response, body))
	}
	s.tokens.Accepted(token)
	switch {
	case response.StatusCode/100 != 2:
		return a, failure(response, body)
	case err != nil:
		return a, fmt.Errorf("the answer broke off: %w", err)
	}
	return a, nil
}

// maxMessage bounds the text of an error.
const maxMessage = 8 << 10

// failure reads Google's description of an error, or takes the text as it is.
func failure(r *http.Response, body []byte) *AnswerError {
	e := &AnswerError{Status: r.StatusCode, Message: strings.TrimSpace(string(body))}
	var described struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	if json.Unmarshal(body, &described) == nil && described.Error.Message != "" {
		e.Message = described.Error.Message
		for _, one := range described.Error.Errors {
			e.Reason = one.Reason
		}
	}
	if len(e.Message) > 500 {
		e.Message = e.Message[:500] + "..."
	}
	return e
}

// bucketPath returns the path of the bucket, escaped.
func (s *Store) bucketPath() string { return "/storage/v1/b/" + url.PathEscape(s.bucket) }

// objectPath returns the path of an object, escaped.
func (s *Store) objectPath(key string) string {
	return s.bucketPath() + "/o/" + url.PathEscape(s.prefix+key)
}

// get reads an object.
func (s *Store) get(ctx context.Context, key string) (driver.Entry, error) {
	// One byte too many is enough for the reader to see that this is not a record.
	a, err := s.send(ctx, request{
		method: http.MethodGet, path: s.objectPath(key), query: url.Values{"alt": {"media"}}, most: driver.MaxValue + 1,
	})
	e := driver.Entry{Floor: floor(a.header), Ceiling: object.Latest}
	switch refusal := look(err); {
	case refusal.missing():
		return e, nil
	case err != nil:
		return driver.Entry{}, s.explain(reading, err)
	}
	e.Value = a.body[:min(len(a.body), driver.MaxValue+1)]
	e.Version, err = generation(a.header.Get("X-Goog-Generation"))
	return e, err
}

// generation returns a version, if the text is the number of one.
func generation(text string) (driver.Version, error) {
	if n, err := strconv.ParseUint(text, 10, 63); err != nil || n == 0 {
		return "", errNoGeneration
	}
	return driver.Version(text), nil
}

// floor returns the server's clock, 0 if it is not known.
func floor(header http.Header) uint64 {
	at, _ := http.ParseTime(header.Get("Date"))
	return object.Floor(at)
}

// put writes an object if its generation is prev, or if there is none.
func (s *Store) put(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	match := "0"
	if prev != "" {
		if _, err := generation(string(prev)); err != nil {
			return "", fmt.Errorf("%w: no object has this version", driver.ErrConflict)
		}
		match = string(prev)
	}
	body, contentType, err := multipartOf(s.prefix+key, value)
	if err != nil {
		return "", err
	}
	a, err := s.send(ctx, request{
		method: http.MethodPost, path: "/upload" + s.bucketPath() + "/o",
		query: url.Values{"uploadType": {"multipart"}, "ifGenerationMatch": {match}, "fields": {"generation"}},
		body:  body, contentType: contentType, most: maxMessage,
	})
	if err != nil {
		return "", s.explain(writing, err)
	}
	var made struct{ Generation string }
	if err := json.Unmarshal(a.body, &made); err != nil {
		return "", fmt.Errorf("%w: %w", errNoGeneration, err)
	}
	return generation(made.Generation)
}

// remove deletes an object of an inspection.
func (s *Store) remove(ctx context.Context, key string) error {
	_, err := s.send(ctx, request{method: http.MethodDelete, path: s.objectPath(key)})
	if look(err).missing() {
		return nil
	}
	return err
}

// look returns the answer in an error; the zero value if there was none.
func look(err error) AnswerError {
	var a *AnswerError
	if errors.As(err, &a) {
		return *a
	}
	return AnswerError{}
}

// missing reports whether there is no object in an existing bucket. The second text is that of
// emulators. A wrong absence would do no harm, since the server checks it at the write.
func (e AnswerError) missing() bool {
	return e.Status == http.StatusNotFound && (strings.HasPrefix(e.Message, "No such object") || e.Message == http.StatusText(e.Status))
}

// busy reports whether the server wants fewer requests, and has not carried this one out.
func (e AnswerError) busy() bool {
	return e.Status == http.StatusTooManyRequests || strings.HasSuffix(strings.ToLower(e.Reason), "ratelimitexceeded")
}

// purpose is the kind of a request, for the remedy in its error.
type purpose int

const (
	reading purpose = iota
	writing
	listing
)

var permissions = map[purpose]string{
	reading: "reading needs storage.objects.get, and storage.objects.list for a missing object",
	writing: "writing needs storage.objects.create, and storage.objects.delete to replace an object; a retention policy or a hold " +
		"of the bucket also refuses that",
	listing: "listing needs storage.objects.list",
}

// explain turns an error into one of the contract, with the remedy for an operator.
func (s *Store) explain(d purpose, err error) error {
	a := look(err)
	switch {
	case a.Status == 0:
		return err
	case d == writing && a.Status == http.StatusPreconditionFailed:
		return fmt.Errorf("%w (%w)", driver.ErrConflict, err)
	case a.busy():
		return fmt.Errorf("the server asks for fewer requests; Cloud Storage takes about one write a second for each object: %w", err)
	case a.Status == http.StatusUnauthorized:
		return err // judged already
	case a.Status == http.StatusForbidden:
		return fmt.Errorf("%w: %s, on bucket %s: %w", driver.ErrDenied, permissions[d], s.bucket, err)
	case a.Status == http.StatusNotFound:
		return fmt.Errorf("there is no bucket %s, or the endpoint is not that of Cloud Storage; make it with "+
			"\"gcloud storage buckets create gs://%s\": %w", s.bucket, s.bucket, err)
	case a.Status/100 == 3:
		return fmt.Errorf("the server redirects, and no redirect is followed; give the endpoint of Cloud Storage itself: %w", err)
	}
	return err
}
