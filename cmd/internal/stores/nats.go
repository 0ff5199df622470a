package stores

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/driver/natskv"
)

// NATS is a key-value bucket of JetStream, on servers that a URL or a context of the nats command
// names.
type NATS struct {
	// Context names a context of the nats command, which then knows the servers and the
	// credentials.
	Context string `json:"context,omitempty"`
	// Servers are URLs without credentials.
	Servers  []string `json:"servers,omitempty"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	Token    string   `json:"token,omitempty"`
	Bucket   string   `json:"bucket"`
	// Migrating: candidates of nats-kv-leader-elect take part.
	Migrating bool `json:"migrating,omitempty"`
	// Pristine: no living member knew another bucket of this name, so the first election of an
	// empty one need not wait.
	Pristine bool `json:"pristine,omitempty"`
}

// InContext is a bucket on the servers of a context of the nats command.
func InContext(setting, name, bucket string) Place {
	return Place{Setting: setting, NATS: &NATS{Context: name, Bucket: bucket}}
}

// ParseContext reads NAME[/BUCKET]; without a bucket it is the one given. No context has a slash in
// its name. Its errors name the setting.
func ParseContext(setting, raw, bucket string) (Place, error) {
	name, own, ok := strings.Cut(raw, "/")
	if !ok {
		return InContext(setting, raw, bucket), nil
	}
	if name == "" || !bucketName.MatchString(own) {
		return Place{}, fault.New("give the name of a context, or NAME/BUCKET; the bucket may have letters, digits, - and _ in its name",
			"%s %q: is neither a context nor one with a bucket", setting, Redact(raw))
	}
	return InContext(setting, name, own), nil
}

// String is the place without credentials.
func (n *NATS) String() string {
	if n.Context != "" {
		return fmt.Sprintf("context %s, bucket %s", n.Context, n.Bucket)
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
		return n.Context
	}
	return n.String()
}

// server is the URL of the servers without credentials.
func (n *NATS) server() string {
	scheme, first, _ := strings.Cut(strings.Join(n.Servers, ","), "://")
	hosts := strings.ReplaceAll(first, scheme+"://", "")
	if n.User != "" || n.Token != "" {
		hosts = hidden + "@" + hosts
	}
	return scheme + "://" + hosts
}

// command is the nats command with the options that reach the same servers.
func (n *NATS) command() string {
	if n.Context != "" {
		return "nats --context " + n.Context
	}
	return "nats --server " + n.server()
}

func (n *NATS) commands(key string) Commands {
	return Commands{
		Look:   fmt.Sprintf("%s kv get %s %s", n.command(), n.Bucket, key),
		Delete: fmt.Sprintf("%s kv del %s %s", n.command(), n.Bucket, key),
	}
}

// limits are the same for all servers.
func (n *NATS) limits() (driver.Bounded, error) { return natskv.FromKeyValue(nil), nil }

func (n *NATS) check(ctx context.Context, s *Store, key string) error {
	if _, err := s.Driver.Read(ctx, key); err != nil {
		return n.explain(err)
	}
	return nil
}

// denied says that a right is missing. The driver's error names it.
func denied(err error) *fault.Error {
	return fault.New("grant it in the server's configuration, or give other credentials; "+
		"the documentation of driver/natskv lists all rights that a candidate needs", "%w", err)
}
