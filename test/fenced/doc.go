// Package fenced shows how an SQL database refuses the writes of a former leader. It has only
// tests.
package fenced
