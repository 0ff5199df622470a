//go:build !integration

package natskv

// onSockets: without the tag integration nothing needs a network.
const onSockets = false

func asProcess() {}
