// Package witness stands outside of an election, records what leaders do, and judges whether two
// of them led at the same time. Tests, the battery and the demo use it. The simulation has its own
// checker, because its time is virtual.
//
//	journal.go  a file to which processes append their acts, and a reader that follows it
//	book.go     acts in memory, and the pairs of terms that overlap
//	verdict.go  the judge of a book and of a journal
package witness
