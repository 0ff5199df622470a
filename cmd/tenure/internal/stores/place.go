// Package stores opens the store that the command line names.
package stores

import (
	"fmt"
	"strings"
)

// Place is where elections are kept: a bucket on servers that a URL or a context of the nats command names. It holds
// credentials; String leaves them out.
type Place struct {
	// Setting is what named the place, for errors: "--store", "--context", or a variable of the environment.
	Setting string `json:"-"`

	// Context names a context of the nats command, which then knows the servers and the credentials.
	Context string `json:"context,omitempty"`
	// Servers are URLs without credentials.
	Servers  []string `json:"servers,omitempty"`
	User     string   `json:"user,omitempty"`
	Password string   `json:"password,omitempty"`
	Token    string   `json:"token,omitempty"`
	Bucket   string   `json:"bucket"`
}

// InContext is a bucket on the servers of a context of the nats command.
func InContext(setting, name, bucket string) Place {
	return Place{Setting: setting, Context: name, Bucket: bucket}
}

// IsZero reports whether no place is named.
func (p Place) IsZero() bool { return p.Context == "" && len(p.Servers) == 0 }

// String is the place without credentials.
func (p Place) String() string {
	if p.Context != "" {
		return fmt.Sprintf("context %s, bucket %s", p.Context, p.Bucket)
	}
	return p.server() + "/" + p.Bucket
}

// GoString is String, so that no way of printing shows credentials.
func (p Place) GoString() string { return p.String() }

// server is the URL of the servers without credentials.
func (p Place) server() string {
	scheme, first, _ := strings.Cut(strings.Join(p.Servers, ","), "://")
	hosts := strings.ReplaceAll(first, scheme+"://", "")
	if p.User != "" || p.Token != "" {
		hosts = hidden + "@" + hosts
	}
	return scheme + "://" + hosts
}

// NATS is the nats command with what it needs to reach the same servers.
func (p Place) NATS() string {
	if p.Context != "" {
		return "nats --context " + p.Context
	}
	return "nats --server " + p.server()
}
