// Package terminaltest runs a program in a pseudo-terminal of its own, and looks at its output and
// at the state in which it leaves the terminal.
package terminaltest
