// Package fenced shows how an SQL database refuses the writes of a leader that is none any more.
// All of it is tests.
package fenced
