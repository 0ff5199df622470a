package s3object

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/tenure-go/tenure/driver"
)

// answer describes the answer to a failed request.
type answer struct {
	status int // 0: there was no answer
	code   string
	header http.Header
}

func look(err error) answer {
	var a answer
	var api smithy.APIError
	if errors.As(err, &api) {
		a.code = api.ErrorCode()
	}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.Response != nil && response.Response.Response != nil {
		a.status, a.header = response.Response.StatusCode, response.Response.Header
	}
	return a
}

// missing reports whether there is no object in an existing bucket. A 404 of any other kind may be
// a proxy's.
func (a answer) missing() bool {
	return a.status == http.StatusNotFound && (a.code == "NoSuchKey" || a.header.Get("X-Amz-Delete-Marker") == "true")
}

// unmet reports whether the version was not the expected one, as far as the server understood it.
func (a answer) unmet() bool { return a.status == http.StatusPreconditionFailed }

// contended reports whether another write to the same object is under way, and goes first.
func (a answer) contended() bool {
	return a.status == http.StatusConflict && (a.code == "ConditionalRequestConflict" || a.code == "OperationAborted")
}

// conflict reports whether this write was refused because of another one, or of a removal.
func (a answer) conflict() bool { return a.unmet() || a.contended() || a.missing() }

// busy reports whether the server wants fewer requests, and has not looked at this one.
func (a answer) busy() bool { return a.status == http.StatusTooManyRequests || a.code == "SlowDown" }

// date returns the server's clock, zero if the answer has none.
func (a answer) date() time.Time {
	t, _ := http.ParseTime(a.header.Get("Date"))
	return t
}

// purpose is the kind of a request, for the remedy in its error.
type purpose int

const (
	reading purpose = iota
	writing
	listing
	checking // the conditions of writes
)

// explain turns an error of the client library into one of the contract, with the remedy for an
// operator.
func (s *Store) explain(d purpose, err error) error {
	a := look(err)
	switch {
	case d == writing && a.conflict():
		return fmt.Errorf("%w (%d %s)", driver.ErrConflict, a.status, a.code)
	case a.status == 0:
		return unanswered(err)
	}
	for _, r := range remedies {
		if !r.fits(a) {
			continue
		}
		text := r.text(s, d, a)
		if r.denied {
			return fmt.Errorf("%w: %s: %w", driver.ErrDenied, text, err)
		}
		return fmt.Errorf("%s: %w", text, err)
	}
	return err
}

// unanswered distinguishes a request that was never made from one that may have arrived.
func unanswered(err error) error {
	var sent *smithyhttp.RequestSendError
	var garbled *smithy.DeserializationError
	var cancelled *smithy.CanceledError
	var broken *brokenAnswerError
	if errors.Is(err, errNoETag) || errors.As(err, &broken) || errors.As(err, &sent) || errors.As(err, &garbled) || errors.As(err, &cancelled) {
		return err
	}
	return fmt.Errorf("nothing could be sent; check that there are credentials (AWS_ACCESS_KEY_ID and "+
		"AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role): %w", err)
}
