// Package seal makes versions for stores in which the writer chooses the version. Use it in an
// adapter whose store keeps the version beside the value, where people can edit the value alone.
package seal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
)

// A version is 16 random bytes and a seal of 8 bytes, in hexadecimal.
const (
	randomSize = 16
	sealSize   = 8
)

// New returns a version for a value under a key: 48 hexadecimal digits. Its random part never
// recurs, in a promoted standby or a restored dump either, as a counter would. Its seal shows that
// the value was written together with the version.
func New(key string, value []byte) string {
	random := make([]byte, randomSize, randomSize+sealSize)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(seal(random, key, value))
}

// seal appends the seal to the random part of a version.
func seal(random []byte, key string, value []byte) []byte {
	h := sha256.New()
	h.Write(random)
	h.Write([]byte(key))
	h.Write([]byte{0})
	h.Write(value)
	return append(random, h.Sum(nil)[:sealSize]...)
}

// Unbroken reports whether New returned the version for this value under this key. A value that was
// edited by hand keeps the version of the one before it.
func Unbroken(version, key string, value []byte) bool {
	b, err := hex.DecodeString(version)
	if err != nil || len(b) != randomSize+sealSize {
		return false
	}
	return hex.EncodeToString(seal(b[:randomSize:randomSize], key, value)) == version
}
