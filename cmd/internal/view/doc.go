// Package view shows an election live on a terminal: who leads, the time left on the lease, who led when, and what
// failovers took. It is the one package that knows the libraries for terminals.
//
// It knows nothing of stores or processes. It is told facts, and what it shows follows from them and the time alone:
//
//	fact.go                               what can be told
//	model.go  member.go  term.go  fold.go what the facts amount to
//	frame.go  layout.go                   a frame of a given size at a given moment
//	headline.go  lease.go  lanes.go  cells.go  axis.go  changes.go  news.go  legend.go   its parts
//	ink.go  text.go                       colours, widths, and what is not fit to print
//	run.go                                the terminal: keys, sizes, ten frames a second
package view
