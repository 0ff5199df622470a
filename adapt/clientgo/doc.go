// Package clientgo lets electors of client-go and controller-runtime elect over any store. Its two
// locks implement resourcelock.Interface, for LeaderElectionConfig.Lock of client-go, and for
// LeaderElectionResourceLockInterface in the options of a manager. Package driver/k8slease is
// something else: it lets Tenure elect in Lease objects.
//
// # The strict mode
//
// With [Lock], Tenure elects, and its guarantee holds for the elector:
//
//	lock, err := clientgo.New(store, "operator", clientgo.Config{})
//	times := lock.Times()
//	mgr, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection: true, LeaderElectionResourceLockInterface: lock,
//		LeaseDuration: &times.LeaseDuration,
//		RenewDeadline: &times.RenewDeadline,
//		RetryPeriod: &times.RetryPeriod,
//		GracefulShutdownTimeout: &times.StopWork,
//	})
//	err = lock.Run(ctx, mgr.Start) // then exit
//
// An elector of client-go itself runs within [Lock.Elect].
//
//   - Create and Update succeed only while Term.Err is nil. They change nothing in the store.
//   - Get shows the identity of this process only while its term is open and valid.
//   - When the term ends, the lock ends the context of Run. A program that does not pass it on
//     still stops in time: StopWithin covers RetryPeriod, RenewDeadline and the time to stop (see
//     Config).
//   - The lease is released only after the work has ended. ReleaseOnCancel is refused.
//
// After a freeze the elector still says that it leads, until its timers have run: IsLeader of
// client-go checks no time. Check Err of [Lock.Term] right before an act, or send its Token.
//
// # The plain mode
//
// With [PlainLock], client-go elects, and the store only holds its record. It promises no more than
// client-go does: there can be two leaders. Each of these is enough:
//
//   - The leader was frozen, and works on when it resumes: for RetryPeriod and RenewDeadline.
//   - The answer to a renewal is late by more than LeaseDuration - RenewDeadline - RetryPeriod.
//   - ReleaseOnCancel is on, and the store does not answer the release.
//   - The clocks of two processes differ in rate by more than those settings allow.
//   - The record is deleted, or the store goes back to an older state.
//
// It has no fencing token. Use it only to replace a Lease where these are acceptable.
// docs/kubernetes-operators.md has measurements of both.
package clientgo
