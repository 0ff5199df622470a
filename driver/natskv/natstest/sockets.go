//go:build integration

package natstest

// onSockets: with this tag, servers are reached as in production.
const onSockets = true
