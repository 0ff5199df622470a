// Package terminaltest runs a program in a pseudo-terminal of its own. It checks the output, and
// the state in which the program leaves the terminal.
package terminaltest
