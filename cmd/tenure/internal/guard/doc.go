// Package guard has a second process hold the deadline of a leader's command, so that the command is dead before anybody
// else can be elected, whatever becomes of the process that leads: if that dies, is stopped or hangs.
//
// The candidate starts a guard and talks to it over two pipes. The guard starts the command, in a process group of its own, and is
// told of each renewal. It never takes the candidate's word for when something was: told that the lease was renewed, it notes its own
// clock, asks how much is left, and counts from before the question, as a leader counts from before its write. So no pipe that is slow
// and no process that is stopped makes a lease longer, and no two processes compare clocks.
//
//	lease's own deadline             SIGTERM, if the candidate has not had the command stopped before
//	a reserve before StopWithin ends SIGKILL
//	a little later                   the kernel kills the guard
//
// The last line is for a guard that is stopped itself. On Linux it keeps a timer in the kernel whose signal is SIGKILL and whose target
// is the guard, stopped or not. And a guard that dies, of this or anything else, takes the command along: by the parent-death signal, and
// by a tripwire, a pair of sockets of which the guard alone holds one end, while the other tells the kernel to send SIGKILL to the
// command's whole process group when the first is closed. Elsewhere the candidate has to do that.
package guard
