// Command tenure shows and works with leader elections. Its help lists the commands:
//
//	tenure --help
package main

import (
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
