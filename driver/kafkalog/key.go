package kafkalog

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxKey is the longest key in bytes.
const maxKey = 249

// minLease is about as long as a healthy Kafka broker may take to answer.
const minLease = time.Second

var errKey = errors.New("not a key that this store holds")

// MinLease returns 1 s: a write is one round trip to three brokers and one back from the log.
func (s *Store) MinLease() time.Duration { return minLease }

// CheckKey returns an error unless the key is 1 to 249 bytes of printable UTF-8. Keys are not
// normalized: keys that differ are different cells.
func (s *Store) CheckKey(key string) error {
	if err := checkKey(key); err != nil {
		return fmt.Errorf("kafkalog: %w", err)
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: it is empty", errKey)
	case len(key) > maxKey:
		return fmt.Errorf("%w: it has %d bytes, and %d is the most", errKey, len(key), maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("%w: %q is not UTF-8", errKey, key)
	case strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: %q holds characters that cannot be printed", errKey, key)
	}
	return nil
}
