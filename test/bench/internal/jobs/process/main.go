// Command process runs package jobs as a process of the bench.
package main

import (
	"fmt"
	"os"

	"github.com/tenure-go/tenure/test/bench/internal/jobs"
)

func main() {
	if err := jobs.Run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
