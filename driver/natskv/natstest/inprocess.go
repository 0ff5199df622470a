//go:build !integration

package natstest

// onSockets: without the tag integration nothing needs a network.
const onSockets = false
