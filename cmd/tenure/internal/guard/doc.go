// Package guard makes a second process enforce the deadline of a leader's command. The command is
// dead before another candidate can be elected, even if the process that leads dies, is stopped or
// hangs.
//
// The candidate starts a guard and talks to it over two pipes. The guard starts the command in a
// process group of its own. When the candidate reports a renewal, the guard reads its own clock,
// asks how much of the lease is left, and counts this time from before the question, as a leader
// counts from before its write. So no slow pipe and no stopped process makes a lease longer, and no
// two processes compare clocks.
//
//	lease's own deadline              SIGTERM, unless the candidate stopped the command before
//	a reserve before StopWithin ends  SIGKILL
//	a little later                    the kernel kills the guard
//
// The last line is for a guard that does not act. On Linux it keeps two timers in the kernel. One
// continues a guard that is stopped, before each step. The other sends SIGKILL to a guard that has
// not sent it to the command's process group in time. A guard that dies takes the command along in
// two ways: by the parent-death signal, and by a tripwire. The tripwire is a pair of sockets. Only
// the guard holds one end; when it is closed, the kernel sends SIGKILL to the command's whole
// process group by way of the other end. On other systems the candidate has to do that.
//
// Processes outside of the group are found by a search for descendants: by the guard, or after its
// death by the candidate. If both are dead, only a PID namespace ends them: see Isolate. Its first
// process, the init, gets the parent-death signal, and the kernel kills all others with it.
package guard
