package natskv

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// minLease is several times as long as a server needs for a synced write on a slow disk.
	minLease = 500 * time.Millisecond

	// maxKey keeps the subject well within the 4096 bytes that a server allows a line of its
	// protocol. A longer line would end the connection, and with it every other election on it.
	maxKey = 512
)

// MinLease returns 500 ms.
func (s *Store) MinLease() time.Duration { return minLease }

// CheckKey returns an error unless NATS can hold the key: 1 to 512 letters, digits or characters of
// "-/_=.", with no dot first, last or next to another. The error names the broken rule.
func (s *Store) CheckKey(key string) error { return checkKey(key) }

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("natskv: the key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("natskv: a key of %d bytes is longer than %d", len(key), maxKey)
	case key[0] == '.', key[len(key)-1] == '.', strings.Contains(key, ".."):
		return fmt.Errorf("natskv: key %q: a dot may not come first, last or next to another", key)
	}
	for _, r := range key {
		if !inKey(r) {
			return fmt.Errorf("natskv: key %q holds %q: only letters, digits and -/_=. may be in a key", key, r)
		}
	}
	return nil
}

// inKey reports whether the client library accepts the character in a key. In a subject, * and >
// are wildcards and a space ends it.
func inKey(r rune) bool {
	return inName(r) || r == '/' || r == '=' || r == '.'
}

// inName reports whether the client library accepts the character in the name of a bucket.
func inName(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	}
	return r == '-' || r == '_'
}
