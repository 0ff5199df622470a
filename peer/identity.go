package peer

import (
	"crypto/ed25519"
	"encoding/base64"
	"sync"
)

// identities are the incarnations that this process made, each a public key, with the private keys
// that prove them. A private key never leaves here.
type identities struct {
	mu   sync.RWMutex
	keys map[string]ed25519.PrivateKey
}

// issue makes one. It is 43 bytes of text.
func (i *identities) issue() string {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic("peer: no randomness: " + err.Error()) // the standard library itself gives up before
	}
	name := text.EncodeToString(public)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys[name] = private
	return name
}

func (i *identities) own(incarnation string) bool {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.keys[incarnation] != nil
}

// prove signs a statement, as one of the incarnations that are this process's own.
func (i *identities) prove(incarnation string, s statement) string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return text.EncodeToString(ed25519.Sign(i.keys[incarnation], s.message()))
}

// publicKey reads an incarnation. Those that no peer made are not keys, and leaders with them
// cannot be followed.
func publicKey(incarnation string) (ed25519.PublicKey, bool) {
	key, err := text.DecodeString(incarnation)
	return key, err == nil && len(key) == ed25519.PublicKeySize
}

// text is how keys, challenges and proofs are written. Strict: one text for each.
var text = base64.RawURLEncoding.Strict()

func newIdentities() *identities { return &identities{keys: map[string]ed25519.PrivateKey{}} }
