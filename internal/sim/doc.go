// Command sim runs many members of one election over a simulated store in virtual time. It injects
// faults, and checks after every event that the rules of Tenure hold.
//
//	go run ./internal/sim                         5,000 seeds of one virtual hour each
//	go run ./internal/sim -seeds 100000           more seeds
//	go run ./internal/sim -seed 17 -v             one seed, with every event
//	go run ./internal/sim -bug absence-claimed    200 seeds with a rule left out: must fail
//	go run ./internal/sim -bugs                   every planted bug in turn
//	go run ./internal/sim -drift 5                clocks off by up to 5 times the bound: must fail
//	go run ./internal/sim -picture                one lease's life, as docs/lease.md shows it
//
// A seed decides everything: the faults, their times, and all random numbers. The same seed gives
// the same run.
package main
