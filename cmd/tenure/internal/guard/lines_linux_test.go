//go:build integration

package guard

// tied checks that the command holds one end of the tripwire.
var tied = []string{"high"}
