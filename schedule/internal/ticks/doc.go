// Package ticks decides which ticks of a scheduled job run. It is pure: it calls no store and reads
// no clock, so the simulation runs the same code as package schedule.
//
// A tick is a job and a planned instant. A cell beside the election's record holds the [State] of
// one job. Every member that leads the election goes through this cycle for each of its jobs:
//
//	Begin                 the term begins
//	Decide                a read is answered; the result is the value to write, if any
//	Settle                the outcome of the write is known, or is not; it may name a tick
//	Start                 that tick may start now, or may not after all
//	End                   its run has ended
//	Wake                  when to read again
//
// Instead of a schedule, an [Invocation] can ask for one tick. Then Verdict has the answer.
//
// The rules have numbers, which comments cite. The reasons are in docs/schedule.md.
//
//	J1  Only a leader writes, and each write follows a read within one attempt.
//	J2  A run starts only after its record is confirmed, in a term that still has time.
//	J3  Nothing starts once the leader was asked to finish.
//	J4  A run of an earlier term without an end is over: it is lost, or runs again.
//	J5  After a change of the store's history, no tick runs that may have run before it.
//	J6  Wall clocks are accurate within a bound; beyond it there is an alarm.
//	J7  Ticks that no leader waited for run late, as far as the policy says.
//	J8  Runs of a job never overlap: a tick within a run is missed, or waits.
//	J9  The end of a run is recorded; if it cannot be, J4 applies.
//	J10 A tick that was ever started is in the state, or at or before State.Over.
package ticks
