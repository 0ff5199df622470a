//go:build integration

package main

import "testing"

// These wait for a while.
func TestWaitingScripts(t *testing.T) { runScripts(t, "testdata/waiting") }
