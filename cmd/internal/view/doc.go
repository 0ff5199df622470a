// Package view shows an election live on a terminal: the leader, the time left on the lease, a
// timeline of leaders, and how long failovers took. No other package imports the libraries for
// terminals.
//
// It knows nothing of stores or processes. It receives facts, and the display follows from them and
// the time alone:
//
//	fact.go                               the facts
//	model.go  member.go  term.go  fold.go the state that they add up to
//	frame.go  layout.go                   a frame of a given size at a given moment
//	headline.go  lease.go  lanes.go  cells.go  axis.go  changes.go  news.go  legend.go   its parts
//	ink.go  text.go                       colors, widths, and text that is not fit to print
//	run.go                                the terminal: keys, sizes, ten frames a second
package view
