//go:build integration && unix && !linux

package guard

// tied does nothing: there is no tripwire.
var tied []string
