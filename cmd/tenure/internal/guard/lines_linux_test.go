//go:build integration

package guard

// tied: the command has one end of the tripwire.
var tied = []string{"high"}
