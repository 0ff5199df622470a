package natskv

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// How a record was lost. These errors come as the Notice of an entry, and with the event that
// reports the loss. Use errors.Is.
var (
	// ErrDeleted: a client deleted the key, as "nats kv del" does.
	ErrDeleted = errors.New("the key was deleted, as by \"nats kv del\"")
	// ErrPurged: a client purged the key or the stream.
	ErrPurged = errors.New("the key or the stream was purged, as by \"nats kv purge\" or \"nats stream purge\"")
	// ErrExpired: the server removed the record when it was older than the bucket's TTL.
	ErrExpired = errors.New("the record expired by the bucket's TTL, which should be longer than any lease")
)

// removal returns why a message is a marker; nil if it is none. Clients and servers mark in
// different ways.
func removal(h nats.Header) error {
	switch h.Get("KV-Operation") {
	case "DEL":
		return ErrDeleted
	case "PURGE":
		return ErrPurged
	}
	switch reason := h.Get("Nats-Marker-Reason"); reason {
	case "":
		return nil
	case "MaxAge":
		return ErrExpired
	case "Purge":
		return ErrPurged
	case "Remove":
		return ErrDeleted
	default:
		return fmt.Errorf("the server removed the record: %s", reason)
	}
}

// loss returns the reason if the key of a vanished record has no message, not even a marker; nil if
// the stream never had a message. If the stream is empty before its messages can have expired, it
// was purged.
func (i streamInfo) loss() error {
	switch age := i.Config.MaxAge; {
	case i.untouched():
		return nil
	case age == 0, i.State.Messages == 0 && !i.Now.IsZero() && i.Now.Sub(i.State.LastTime) < age:
		return ErrPurged
	}
	return fmt.Errorf("%w, or was purged", ErrExpired)
}

// removed is removal for the client libraries' form of the headers.
func removed(deleted, purged bool) error {
	switch {
	case deleted:
		return ErrDeleted
	case purged:
		return ErrPurged
	}
	return nil
}
