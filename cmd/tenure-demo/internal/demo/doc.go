// Package demo shows an election at work, and checks it while it does.
//
// The demo starts candidates, each a process of its own, and disturbs whichever leads: it kills it, freezes it, asks it to
// end, in turn. What the candidates report and what the demo does is put in order by the clock that all processes of the
// machine share, told line by line, and kept in a ledger of failovers. While it leads, a candidate acts many times a second
// and reports when; internal/witness looks for an act of an older term that came after the first act of a newer one.
//
//	demo.go  options.go                   the front door
//	server.go  natsserver.go  s3server.go what the demo starts where it is given no store
//	candidate.go  telling.go  work.go     one candidate, in its own process
//	spec.go  report.go                    what the demo tells a candidate, and hears from it
//	director.go  crew.go  process.go      the loop, and the candidates' processes
//	trial.go                              what is done to the leader
//	entry.go  sight.go  sorter.go         everything that happened, in order
//	ledger.go  tally.go                   what failovers took, and what they had to take
//	acts.go                               what the witness judges
//	printer.go  human*.go  jsonl.go       telling it line by line
//	live*.go                              showing it on a terminal
package demo
