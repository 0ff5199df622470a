package k8slease

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tenure-go/tenure/driver"
)

// keyAnnotation holds the key of a Lease whose name differs from it.
const keyAnnotation = "tenure-go.github.io/key"

// Name returns the name of the Lease that holds a key: the key with dots in place of slashes, which
// no name of a Lease can have. Two keys may have the same Lease. It holds the key that was written
// first, and a Store refuses the other one.
func Name(key string) string { return strings.ReplaceAll(key, "/", ".") }

// maxKey is the longest name of a Lease.
const maxKey = 253

var leaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// CheckKey returns an error unless Name makes the name of a Lease from the key: 1 to 253 lower-case
// letters, digits, hyphens, dots and slashes, with a letter or digit at both ends and on both sides
// of each dot and slash.
func (s *Store) CheckKey(key string) error {
	switch {
	case len(key) > maxKey:
		return fmt.Errorf("key %.40q...: %d bytes, of at most %d", key, len(key), maxKey)
	case !leaseName.MatchString(Name(key)):
		return fmt.Errorf("key %q: the name of a Lease has lower-case letters, digits, - and . alone (/ becomes .), with a letter "+
			"or digit at both ends and on both sides of each . and /", key)
	}
	return nil
}

// owner returns the key in the annotation, or else the name.
func (l *lease) owner() string {
	if key, ok := l.annotations[keyAnnotation]; ok {
		return key
	}
	return l.name
}

// key returns the key whose watches follow the Lease. If the annotation fits no key of this Lease,
// it is the name, for which the Lease is foreign.
func (l *lease) key() string {
	if key := l.owner(); Name(key) == l.name {
		return key
	}
	return l.name
}

// refuses returns an error unless the Lease holds the key.
func (l *lease) refuses(key string) error {
	if owner := l.owner(); owner != key {
		return fmt.Errorf("the Lease %q holds the key %q, and cannot hold the key %q too: change one of the two names, or delete "+
			"the Lease if its key is not used", l.name, owner, key)
	}
	return nil
}

// as returns an entry as it is for a key. If the Lease holds another key, the value is foreign: no
// candidate claims it.
func (l *lease) as(key string, e driver.Entry) driver.Entry {
	if wrong := l.refuses(key); wrong != nil {
		e.Value, e.Notice = []byte(wrong.Error()), wrong
	}
	return e
}
