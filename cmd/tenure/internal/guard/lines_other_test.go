//go:build integration && unix && !linux

package guard

// tied: there is no tripwire.
var tied []string
