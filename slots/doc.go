// Package slots lets at most N members of a group lead at a time.
package slots
