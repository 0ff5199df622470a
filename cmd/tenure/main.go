// Command tenure runs programs under a leader election, and shows and changes elections. Its help
// lists the commands:
//
//	tenure --help
package main

import "github.com/tenure-go/tenure/cmd/internal/cli"

func main() {
	beGuard()
	cli.Main(newRoot())
}
