package stores

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// NATS is a key-value bucket of JetStream. A URL or a context of the nats command names its
// servers.
type NATS struct {
	// Context names a context of the nats command, which has the servers and the credentials;
	// empty: they follow here.
	Context string `json:"context,omitempty"`
	// Servers are URLs without credentials.
	Servers  []string `json:"servers,omitempty"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	Token    string   `json:"token,omitempty"`
	Bucket   string   `json:"bucket"`
	// Migrating: candidates of nats-kv-leader-elect take part.
	Migrating bool `json:"migrating,omitempty"`
	// Pristine: no living member has used an earlier bucket of this name, so the first election in
	// an empty bucket need not wait.
	Pristine bool `json:"pristine,omitempty"`
}

// InContext returns a bucket on the servers of a context of the nats command.
func InContext(setting, name, bucket string) Place {
	return Place{Setting: setting, NATS: &NATS{Context: name, Bucket: bucket}}
}

// ParseContext reads NAME[/BUCKET]; bucket is the default. The name of a context has no slash. The
// errors name the setting.
func ParseContext(setting, raw, bucket string) (Place, error) {
	name, own, ok := strings.Cut(raw, "/")
	if !ok {
		return InContext(setting, raw, bucket), nil
	}
	if name == "" || !bucketName.MatchString(own) {
		return Place{}, fault.New("give the name of a context, or NAME/BUCKET; the name of a bucket may have only letters, digits, - and _",
			"%s %s: is neither NAME nor NAME/BUCKET", setting, fault.Quote(raw))
	}
	return InContext(setting, name, own), nil
}

// String returns the place without credentials.
func (n *NATS) String() string {
	if n.Context != "" {
		return fmt.Sprintf("context %s, bucket %s", fault.Shown(n.Context), n.Bucket)
	}
	if n.Migrating {
		return n.server() + "/" + n.Bucket + "?" + migrating
	}
	return n.server() + "/" + n.Bucket
}

// GoString is String.
func (n *NATS) GoString() string { return n.String() }

func (n *NATS) name() string {
	if n.Context != "" {
		return fault.Shown(n.Context)
	}
	return n.String()
}

// server returns the URL of the servers without credentials.
func (n *NATS) server() string {
	scheme, first, _ := strings.Cut(strings.Join(n.Servers, ","), "://")
	hosts := strings.ReplaceAll(first, scheme+"://", "")
	if n.User != "" || n.Token != "" {
		hosts = hidden + "@" + hosts
	}
	return scheme + "://" + hosts
}

// command returns the nats command with the options that reach the same servers.
func (n *NATS) command() string {
	if n.Context != "" {
		return "nats --context " + fault.Shown(n.Context)
	}
	return "nats --server " + n.server()
}

func (n *NATS) commands(key string) Commands {
	return Commands{
		Look:   fmt.Sprintf("%s kv get %s %s", n.command(), n.Bucket, key),
		Delete: fmt.Sprintf("%s kv del %s %s", n.command(), n.Bucket, key),
	}
}

// limits returns those of every bucket, without a call of a server.
func (n *NATS) limits() (driver.Bounded, error) { return natskv.FromKeyValue(nil), nil }

func (n *NATS) check(ctx context.Context, s *Store, key string) error {
	if _, err := s.Driver.Read(ctx, key); err != nil {
		return n.explain(err)
	}
	return nil
}

// denied returns the error and the hint for a missing right. The driver's error names the right.
func denied(err error) *fault.Error {
	return fault.New("grant it in the server's configuration, or give other credentials; "+
		"the documentation of driver/natskv lists all rights that a candidate needs", "%w", err)
}
