package peer

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/driver"
)

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
	signature, err := text.DecodeString(proof)
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
	c, err := text.DecodeString(header)
	if err != nil || len(c) != challengeSize {
		return nil, fmt.Errorf("%s is not %d bytes in unpadded base64url", challengeHeader, challengeSize)
	}
	return c, nil
}
