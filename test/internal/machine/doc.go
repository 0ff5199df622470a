// Package machine holds the calls of the operating system that measurements need: one clock for all
// processes of the machine, and control of their scheduling and their ends. It works on Linux.
// Elsewhere it compiles, and Supported is false.
package machine
