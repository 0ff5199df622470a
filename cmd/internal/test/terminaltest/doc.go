// Package terminaltest runs a program in a terminal of its own, a pseudo-terminal of Unix, and looks at what it writes there
// and what it leaves behind.
package terminaltest
