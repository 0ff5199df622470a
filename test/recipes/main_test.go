//go:build integration

package recipes

import (
	"fmt"
	"os"
	"testing"

	"github.com/tenure-go/tenure/test/internal/natsd"
)

func TestMain(m *testing.M) {
	natsd.Main()
	if dir := os.Getenv(rootVariable); dir != "" {
		fmt.Fprintln(os.Stderr, "process 1:", enter(dir))
		os.Exit(1)
	}
	code := m.Run()
	for _, end := range atEnd {
		end()
	}
	os.Exit(code)
}
