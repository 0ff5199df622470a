// Package machine is what the measurements need of the operating system: one clock for all processes of the machine, and
// a hand on their scheduling and their ends. It does its work on Linux; elsewhere it compiles and Supported is false.
package machine
