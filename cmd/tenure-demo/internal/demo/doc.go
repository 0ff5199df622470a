// Package demo shows an election at work, and checks it at the same time.
//
// The demo starts candidates, each a process of its own, and disturbs the leader: it kills it,
// freezes it, and asks it to end, in turn. It sorts the reports of the candidates and its own
// actions by the clock that all processes of the machine share, prints them line by line, and keeps
// a ledger of failovers. While it leads, a candidate acts many times a second and reports when;
// internal/witness looks for an act of an older term that came after the first act of a newer one.
//
//	demo.go  options.go                   the entry point and its settings
//	server.go  natsserver.go  s3server.go servers that the demo starts if no store is named
//	candidate.go  telling.go  work.go     one candidate, in its own process
//	spec.go  report.go                    messages to a candidate, and from it
//	director.go  crew.go  process.go      the loop, and the candidates' processes
//	trial.go                              the faults that are injected
//	entry.go  sight.go  sorter.go         everything that happened, in order
//	ledger.go  tally.go                   times of failovers, and the least possible times
//	acts.go                               the acts of leaders, for the witness
//	printer.go  human*.go  jsonl.go       output line by line
//	live*.go                              output on a terminal
package demo
