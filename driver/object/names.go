// Package object has what stores in object storage share: the names of objects, the calls of a
// store, the check that a server heeds the conditions of writes, inspections, and the server's
// clock as a floor.
package object

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ProbePrefix begins the last parts of the names of a store's own objects.
const ProbePrefix = ".tenure-probe-"

// Limits in bytes.
const (
	// maxName is the limit of all services on an object's name.
	maxName = 1024
	// maxFolder leaves room for the names of a store's own objects.
	maxFolder = maxName - 40
)

// Names are the rules of one service for the names of objects: UTF-8 without control characters, at
// most 1,024 bytes together with the prefix, and at most 984 up to the last slash. No part between
// slashes may be empty, "." or "..", since servers, proxies and tools resolve such parts.
type Names struct {
	// MaxPart is the limit on a part between slashes, in bytes; 0: there is none.
	MaxPart int
	// Odd returns why the service cannot hold a part between slashes, empty if it can; nil: it can
	// hold all.
	Odd func(part string) string
}

// CheckKey returns an error unless the key can be the rest of an object's name behind the prefix.
// The last part may not begin with ProbePrefix.
func (n Names) CheckKey(prefix, key string) error {
	if strings.HasPrefix(strings.TrimPrefix(key, Folder(key)), ProbePrefix) {
		return fmt.Errorf("key %q: objects whose names begin with %s are for the store's own checks", key, ProbePrefix)
	}
	return n.check("key", prefix, key)
}

// Prefix makes "a/b", "/a/b" and "a/b/" the same: a prefix with a slash at its end, or the empty
// one.
func (n Names) Prefix(prefix string) (string, error) {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return "", nil
	}
	if len(prefix) >= maxFolder {
		return "", fmt.Errorf("prefix %.40q...: %d bytes, of at most %d", prefix, len(prefix), maxFolder-1)
	}
	if err := n.check("prefix", "", prefix); err != nil {
		return "", err
	}
	return prefix + "/", nil
}

func (n Names) check(what, prefix, name string) error {
	full, folder := len(prefix)+len(name), len(prefix)+len(Folder(name))
	switch {
	case name == "":
		return fmt.Errorf("the %s is empty", what)
	case full > maxName:
		return fmt.Errorf("%s %.40q...: %d bytes with the prefix, of at most %d", what, name, full, maxName)
	case folder > maxFolder:
		return fmt.Errorf("%s %.40q...: %d bytes with the prefix up to the last slash, of at most %d", what, name, folder, maxFolder)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: not UTF-8", what, name)
	case strings.ContainsFunc(name, Control):
		return fmt.Errorf("%s %q: control characters cannot be in an object's name", what, name)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return fmt.Errorf("%s %q: part %q between slashes would be resolved away", what, name, part)
		case n.MaxPart > 0 && len(part) > n.MaxPart:
			return fmt.Errorf("%s %.40q...: part %.40q... has %d bytes, of at most %d between slashes", what, name, part, len(part), n.MaxPart)
		case n.Odd != nil && n.Odd(part) != "":
			return fmt.Errorf("%s %q: %s", what, name, n.Odd(part))
		}
	}
	return nil
}

// Folder returns a name up to its last slash.
func Folder(name string) string { return name[:strings.LastIndexByte(name, '/')+1] }

// Control reports whether a character is a control character. They have no place in the XML that
// servers answer with.
func Control(r rune) bool { return r < ' ' || r == 0x7f }
