// Package dapr runs the conformance test of Dapr's lock components over an election for each lock.
// It is a module of its own, outside of go.work, so that no other module gets its requirements.
//
// The test asks for two things that an election does not promise, and an adapter adds them:
//
//   - A lock expires after a fixed time although its owner lives. An election renews its lease, so
//     the adapter resigns at that time. Nothing stops the work of the owner then, which is why such
//     a lock does not keep two owners from working at once.
//   - Any client that gives the name of the owner may unlock. In an election, only the process that
//     leads can resign.
package dapr
