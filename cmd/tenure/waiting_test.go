//go:build integration

package main

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/program"
)

// These scripts wait for a while.
func TestWaitingScripts(t *testing.T) { program.Scripts(t, "tenure", "testdata/waiting") }
