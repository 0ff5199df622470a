package azureblob

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/object"
)

// errNoETag leaves the outcome of a write open: it was accepted, but its version cannot be named.
var errNoETag = fmt.Errorf("%w: it has no strong ETag; a proxy may remove or weaken it, as with compression; go past the proxy",
	object.ErrNoVersion)

// AnswerError is an answer by which the server refused a request, or failed.
type AnswerError struct {
	// Status is that of HTTP.
	Status int
	// Code is Azure's word for it, such as ServerBusy; it may be empty.
	Code bloberror.Code
	// Message is the first line of the server's text, and a detail.
	Message string
	// Date is the server's time; zero: it is not known.
	Date time.Time
}

// Error returns the status, the code and the text.
func (e *AnswerError) Error() string {
	return strings.TrimRight(fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message), ": ")
}

// read returns the error in an answer.
func read(r *http.Response) *AnswerError {
	e := &AnswerError{Status: r.StatusCode, Code: bloberror.Code(r.Header.Get("X-Ms-Error-Code"))}
	e.Date, _ = http.ParseTime(r.Header.Get("Date"))
	body, _ := runtime.Payload(r)
	var described struct {
		Code                               bloberror.Code
		Message, AuthenticationErrorDetail string
	}
	if xml.Unmarshal(body, &described) == nil {
		if e.Code == "" {
			e.Code = described.Code
		}
		e.Message = firstLine(described.Message)
		if detail := firstLine(described.AuthenticationErrorDetail); detail != "" {
			e.Message += " " + detail
		}
	} else {
		e.Message = firstLine(string(body))
	}
	return e
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(line) > 300 {
		line = line[:300] + "..."
	}
	return strings.TrimSpace(line)
}

// plain returns the server's answer in place of an error of the library. It takes the URL out of
// errors of the network, since a SAS token is a part of it.
func plain(err error) error {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) && answer.RawResponse != nil {
		return read(answer.RawResponse)
	}
	var request *url.Error
	if !errors.As(err, new(unsentError)) && errors.As(err, &request) {
		return request.Err
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

// get reads a blob.
func (s *Store) get(ctx context.Context, key string) (driver.Entry, error) {
	c := s.clients(ctx)
	out, err := c.NewBlobClient(s.prefix+key).DownloadStream(ctx, nil)
	if err != nil {
		err = plain(err)
		if a := look(err); a.Code == bloberror.BlobNotFound {
			return driver.Entry{Floor: object.Floor(a.Date), Ceiling: object.Latest}, nil
		}
		return driver.Entry{}, s.explain(reading, c.secret, err)
	}
	defer func() { _ = out.Body.Close() }()
	e := driver.Entry{Ceiling: object.Latest}
	if out.Date != nil {
		e.Floor = object.Floor(*out.Date)
	}
	// One byte too many is enough for the reader to see that this is not a record.
	if e.Value, err = io.ReadAll(io.LimitReader(out.Body, driver.MaxValue+1)); err != nil {
		return driver.Entry{}, fmt.Errorf("the answer broke off: %w", plain(err))
	}
	if out.LeaseStatus != nil && *out.LeaseStatus == lease.StatusTypeLocked {
		e.Notice = s.leased(key)
	}
	e.Version, err = version(out.ETag)
	return e, err
}

// leased says how to end the lease of another program.
func (s *Store) leased(key string) error {
	return fmt.Errorf("another program holds an Azure lease on the blob, so no candidate can write it; end that program's lease with "+
		"\"az storage blob lease break --account-name %s --container-name %s --blob-name '%s'\"", s.account, s.container, s.prefix+key)
}

// version returns the ETag of an answer.
func version(tag *azcore.ETag) (driver.Version, error) {
	if tag == nil || !strong(string(*tag)) {
		return "", errNoETag
	}
	return driver.Version(*tag), nil
}

// strong reports whether a text is an ETag that can be a condition of a write.
func strong(tag string) bool {
	odd := func(r rune) bool { return r <= ' ' || r == '"' || r > '~' }
	return len(tag) > 2 && tag[0] == '"' && tag[len(tag)-1] == '"' && !strings.ContainsFunc(tag[1:len(tag)-1], odd)
}

// put writes a blob if its ETag is prev, or if there is none.
func (s *Store) put(ctx context.Context, key string, prev driver.Version, value []byte) (driver.Version, error) {
	match := &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}
	if prev != "" {
		if !strong(string(prev)) {
			return "", fmt.Errorf("%w: no blob has this version", driver.ErrConflict)
		}
		match = &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(prev))}
	}
	c := s.clients(ctx)
	out, err := c.NewBlockBlobClient(s.prefix+key).Upload(ctx, streaming.NopCloser(bytes.NewReader(value)), &blockblob.UploadOptions{
		HTTPHeaders:      &blob.HTTPHeaders{BlobContentType: to.Ptr("application/json"), BlobCacheControl: to.Ptr("no-store")},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: match},
	})
	if err != nil {
		return "", s.explain(writing, c.secret, plain(err))
	}
	s.versioned.Store(out.VersionID != nil)
	return version(out.ETag)
}

// remove deletes a blob of an inspection.
func (s *Store) remove(ctx context.Context, key string) error {
	_, err := s.clients(ctx).NewBlobClient(s.prefix+key).Delete(ctx, nil)
	if err = plain(err); look(err).Code == bloberror.BlobNotFound {
		return nil
	}
	return err
}
