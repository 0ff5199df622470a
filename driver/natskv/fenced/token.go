package fenced

import (
	"crypto/rand"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
)

const (
	// Header is the name of the header that carries the fencing token of the term, in decimal
	// digits.
	Header = "Tenure-Token"
	// FenceHeader is the name of the header that only messages of the fence have, with the
	// election's name.
	FenceHeader = "Tenure-Fence"
	// holderHeader distinguishes two leaders that, by mistake, have the same token.
	holderHeader = "Tenure-Holder"
)

// holder identifies this process.
var holder = rand.Text()

// Token returns the fencing token of the term that wrote a message with these headers, and false if
// they hold none.
func Token(h nats.Header) (token uint64, ok bool) {
	token, err := strconv.ParseUint(h.Get(Header), 10, 64)
	return token, err == nil
}

// IsFence reports whether a message with these headers belongs to the fence. Consumers should
// ignore such messages. They stand in the stream between the messages of two terms.
func IsFence(h nats.Header) bool { return h.Get(FenceHeader) != "" }

// stamped returns a copy that carries the token.
func stamped(m *nats.Msg, token uint64) *nats.Msg {
	c := &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
	if c.Header == nil {
		c.Header = nats.Header{}
	}
	c.Header.Set(Header, strconv.FormatUint(token, 10))
	return c
}
