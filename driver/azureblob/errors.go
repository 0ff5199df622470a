package azureblob

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/tenure-go/tenure/driver"
)

// purpose is the kind of a request, for the remedy in its error.
type purpose int

const (
	reading purpose = iota
	writing
	listing
	making
)

var rights = map[purpose]string{
	reading: "reading needs the role Storage Blob Data Reader, or a SAS token with r",
	writing: "writing needs the role Storage Blob Data Contributor, or a SAS token with w",
	listing: "listing needs the role Storage Blob Data Reader, or a SAS token with l for the container",
	making:  "to make a container needs the role Storage Blob Data Contributor for the account, or its key",
}

// explain turns an error into one of the contract, with the remedy for an operator.
func (s *Store) explain(d purpose, used secret, err error) error {
	a := look(err)
	switch {
	case a.Status == 0:
		return err
	case strings.HasPrefix(string(a.Code), "Lease"):
		return fmt.Errorf("another program holds an Azure lease on the blob, which refuses all other writes; end that lease with "+
			"\"az storage blob lease break\": %w", err)
	case d == writing && (a.Status == http.StatusPreconditionFailed || a.Code == bloberror.BlobAlreadyExists):
		return fmt.Errorf("%w (%w)", driver.ErrConflict, err)
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		return fmt.Errorf("the server asks for fewer requests, or is busy: %w", err)
	case a.Status == http.StatusUnauthorized && s.tokens != nil:
		return err // judged already
	case a.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w: the server takes no such credentials: %w", driver.ErrDenied, err)
	case a.Status == http.StatusForbidden:
		return fmt.Errorf("%w: %s: %w", driver.ErrDenied, s.forbidden(d, used, a), err)
	case a.Code == bloberror.ContainerBeingDeleted:
		return fmt.Errorf("container %s is being deleted; its name is free again after some minutes: %w", s.container, err)
	case a.Status == http.StatusNotFound:
		return fmt.Errorf("there is no container %s in account %s, or the endpoint is not that of Blob Storage; make it with \"%s\": %w",
			s.container, s.account, s.made(), err)
	case a.Status == http.StatusConflict && strings.Contains(string(a.Code), "Immutable"):
		return fmt.Errorf("a policy makes blobs immutable, so no lease can be renewed; remove the immutability policy or the legal "+
			"hold of container %s, or use another container: %w", s.container, err)
	case a.Status/100 == 3:
		return fmt.Errorf("the server redirects, and no redirect is followed; give the endpoint of Blob Storage itself: %w", err)
	}
	return err
}

// made is the command that makes the container.
func (s *Store) made() string {
	return fmt.Sprintf("az storage container create --account-name %s --name %s --auth-mode login", s.account, s.container)
}

// skew is the difference of clocks at which Azure refuses signatures.
const skew = 15 * time.Minute

const firewall = "; or the firewall of the account does not let this machine in (its network rules)"

// forbidden says why a request is refused.
func (s *Store) forbidden(d purpose, used secret, a AnswerError) string {
	const replaced = "the key of the account may have been replaced, or belong to another account; give the present one"
	switch {
	case a.Code == bloberror.AuthenticationFailed:
	case a.Code != bloberror.AuthorizationFailure:
		return rights[d]
	case used.key != "":
		return replaced + firewall
	default:
		return rights[d] + firewall
	}
	if ends := ends(used.sas); !ends.IsZero() && !a.Date.IsZero() && a.Date.After(ends) {
		return fmt.Sprintf("the SAS token ended at %s; give another one", ends.Format(time.RFC3339))
	}
	if off := time.Since(a.Date); !a.Date.IsZero() && off.Abs() > skew-time.Minute {
		return fmt.Sprintf("the clock of this machine is off by about %v from the server's, and Azure refuses signatures that are off by "+
			"%v; set the clock", off.Abs().Round(time.Minute), skew)
	}
	if used.key != "" {
		return replaced
	}
	return "the SAS token is not valid: its key may have been replaced, its policy removed, or it begins later; give another one"
}

// ends returns the end of a SAS token; the zero time if it does not tell.
func ends(sas string) time.Time {
	values, err := url.ParseQuery(sas)
	if err != nil {
		return time.Time{}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z", time.DateOnly} {
		if at, err := time.Parse(layout, values.Get("se")); err == nil {
			return at
		}
	}
	return time.Time{}
}
