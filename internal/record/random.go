package record

import (
	"crypto/rand"
	"encoding/binary"
)

// Random returns 64 random bits, for nonces and incarnations. They must differ even after a machine
// was cloned, so the bits come from the system's generator.
func Random() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}
