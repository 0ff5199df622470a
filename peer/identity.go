package peer

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/record"
)

// identities holds the incarnations that this process made. Each is a public key.
type identities struct {
	mu  sync.RWMutex
	all map[string]identity
}

// identity is one incarnation. The private key, which proves it, stays here. The function left is
// that of its election.
type identity struct {
	key  ed25519.PrivateKey
	left func(term uint64) time.Duration
}

// issue returns a new incarnation, of 43 bytes of text.
func (i *identities) issue(left func(term uint64) time.Duration) string {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		panic("peer: no randomness: " + err.Error()) // it cannot happen: Go exits first
	}
	name := text.EncodeToString(public)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all[name] = identity{private, left}
	return name
}

func (i *identities) of(incarnation string) (one identity, own bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	one, own = i.all[incarnation]
	return one, own
}

func (i *identities) isOwn(incarnation string) bool {
	_, own := i.of(incarnation)
	return own
}

// left returns for how much longer the lease of an own record is valid. No lock is held while the
// election answers.
func (i *identities) left(r *record.Record) time.Duration {
	one, own := i.of(r.Incarnation)
	if !own {
		return 0
	}
	return one.left(r.Term)
}

// prove signs a statement with the key of one of these incarnations.
func (i *identities) prove(incarnation string, s statement) string {
	one, _ := i.of(incarnation)
	return text.EncodeToString(ed25519.Sign(one.key, s.message()))
}

// publicKey decodes an incarnation. One that was made without this package is no key, and such a
// leader cannot be followed.
func publicKey(incarnation string) (ed25519.PublicKey, bool) {
	key, err := decodeText(incarnation)
	return key, err == nil && len(key) == ed25519.PublicKeySize
}

// text encodes keys, challenges and proofs; decodeText decodes them. Each has only one encoding.
var text = base64.RawURLEncoding.Strict()

func decodeText(s string) ([]byte, error) {
	if at := strings.IndexAny(s, "\r\n"); at >= 0 { // DecodeString skips them
		return nil, base64.CorruptInputError(at)
	}
	return text.DecodeString(s)
}

func newIdentities() *identities { return &identities{all: map[string]identity{}} }

const (
	// domain begins every signed message, so that no signature means anything elsewhere.
	domain = "tenure peer proof 1\n"

	challengeHeader = "Tenure-Challenge"
	proofHeader     = "Tenure-Proof"
	challengeSize   = 32
)

var errProof = errors.New("the peer does not prove that it holds the record's incarnation")

// statement is the text that a leader signs. It says to the client that drew the challenge that
// this is the record of the election.
type statement struct {
	challenge []byte
	// place is the number of the event in its stream, from 1; 0 without a stream. So a client
	// accepts each event only once.
	place   uint64
	key     string
	version driver.Version
	value   []byte
}

// message returns the signed bytes. Each part follows its length, so the message is unambiguous.
func (s statement) message() []byte {
	m := []byte(domain)
	for _, part := range [][]byte{
		s.challenge, binary.BigEndian.AppendUint64(nil, s.place), []byte(s.key), []byte(s.version), s.value,
	} {
		m = binary.BigEndian.AppendUint64(m, uint64(len(part)))
		m = append(m, part...)
	}
	return m
}

// check returns errProof unless the proof is a signature of the statement by this incarnation.
func (s statement) check(incarnation, proof string) error {
	key, ok := publicKey(incarnation)
	if !ok {
		return errProof
	}
	signature, err := decodeText(proof)
	if err != nil || !ed25519.Verify(key, s.message(), signature) {
		return errProof
	}
	return nil
}

func newChallenge() []byte {
	c := make([]byte, challengeSize)
	_, _ = rand.Read(c) // it never fails
	return c
}

// parseChallenge reads the challenge of a request. It is nil without the header: that client wants
// no proof.
func parseChallenge(header string) ([]byte, error) {
	if header == "" {
		return nil, nil
	}
	c, err := decodeText(header)
	if err != nil || len(c) != challengeSize {
		return nil, fmt.Errorf("%s is not %d bytes in unpadded base64url", challengeHeader, challengeSize)
	}
	return c, nil
}
