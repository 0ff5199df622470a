// Command tenure shows and works with leader elections. Its help lists the commands:
//
//	tenure --help
package main

import "github.com/tenure-go/tenure/cmd/internal/cli"

func main() {
	beGuard()
	cli.Main(newRoot())
}
