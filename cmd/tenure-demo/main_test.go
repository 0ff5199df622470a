package main

import (
	"testing"

	"github.com/tenure-go/tenure/cmd/internal/test/program"
)

func TestMain(m *testing.M) { program.Main(m, main) }

// The scripts hold whole command lines with their complete output.
func TestScripts(t *testing.T) { program.Scripts(t, "tenure-demo", "testdata/script") }
