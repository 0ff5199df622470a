package peer

import (
	"crypto/ed25519"
	"encoding/base64"
	"sync"
)

// identities holds the incarnations that this process made. Each is a public key. The private keys,
// which prove them, stay here.
type identities struct {
	mu   sync.RWMutex
	keys map[string]ed25519.PrivateKey
}

// issue returns a new incarnation, of 43 bytes of text.
func (i *identities) issue() string {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic("peer: no randomness: " + err.Error()) // it cannot happen: Go exits first
	}
	name := text.EncodeToString(public)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[name] = private
	return name
}

func (i *identities) isOwn(incarnation string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.keys[incarnation] != nil
}

// prove signs a statement with the key of one of these incarnations.
func (i *identities) prove(incarnation string, s statement) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return text.EncodeToString(ed25519.Sign(i.keys[incarnation], s.message()))
}

// publicKey decodes an incarnation. One that was made without this package is no key, and such a
// leader cannot be followed.
func publicKey(incarnation string) (ed25519.PublicKey, bool) {
	key, err := text.DecodeString(incarnation)
	return key, err == nil && len(key) == ed25519.PublicKeySize
}

// text encodes keys, challenges and proofs. It is strict, so each has only one encoding.
var text = base64.RawURLEncoding.Strict()

func newIdentities() *identities { return &identities{keys: map[string]ed25519.PrivateKey{}} }
