package connection

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure/driver"
)

// isLogin reports whether an error means that the server does not know the user, or no longer does.
func isLogin(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

// credentialsRefused adds a remedy to an error for which isLogin is true. It returns any other as
// it is.
func credentialsRefused(err error) error {
	if !isLogin(err) {
		return err
	}
	return fmt.Errorf("%w: the server refuses the credentials (%w): check them",
		driver.ErrDenied, err)
}

func isPermission(err error) bool { return errors.Is(err, nats.ErrPermissionViolation) }

// missingPublish returns the missing right if err means that a publish to one of the subjects was
// refused.
func missingPublish(err error, subjects []string) error {
	if !isPermission(err) {
		return nil
	}
	for _, subject := range subjects {
		if strings.Contains(err.Error(), fmt.Sprintf("Publish to %q", subject)) {
			return fmt.Errorf("%w: the user may not publish to %s: grant publish on %s",
				driver.ErrDenied, subject, grantable(subject))
		}
	}
	return nil
}

// refusedSubject returns the subject of a publish that the server refused; empty if it was
// something else.
func refusedSubject(err error) string {
	if !isPermission(err) {
		return ""
	}
	_, rest, _ := strings.Cut(err.Error(), `Publish to "`)
	subject, _, _ := strings.Cut(rest, `"`)
	return subject
}

// grantable returns the subject to grant so that the next request is allowed, too: the names of
// consumers are never the same.
func grantable(subject string) string {
	if stream, ok := strings.CutPrefix(subject, FlowControl); ok {
		stream, _, _ = strings.Cut(stream, ".")
		return FlowControl + stream + ".>"
	}
	api, consumer, ok := strings.Cut(subject, CreateConsumer)
	parts := strings.SplitN(consumer, ".", 3) // the stream, the consumer's name, the keys
	if !ok || len(parts) < 3 {
		return subject
	}
	return api + CreateConsumer + parts[0] + ".*." + parts[2]
}

// refusesInbox reports whether an inbox was refused. On an own connection all inboxes are the
// store's.
func refusesInbox(err error, prefix string) bool {
	return isPermission(err) && strings.Contains(err.Error(), `Subscription to "`+prefix+".")
}

// refusesAnswers reports whether the one subscription was refused over which all answers to the
// connection's requests come. The library makes it at the first request, so this may have been long
// before the present one.
func refusesAnswers(err error, prefix string) bool {
	return refusesInbox(err, prefix) && strings.Contains(err.Error(), `.*"`)
}

func missingInbox(prefix string) error {
	return fmt.Errorf("%w: the user may not subscribe to its own inboxes: grant subscribe on %s.>",
		driver.ErrDenied, prefix)
}

func inboxPrefix(custom string) string {
	if custom != "" {
		return custom
	}
	return strings.TrimSuffix(nats.InboxPrefix, ".")
}
