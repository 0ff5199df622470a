// Package view shows an election live on a terminal: the leader, the time left on the lease, a
// timeline of leaders, and how long failovers took. No other package imports the libraries for
// terminals.
//
// It does not use stores or processes. It receives facts, and the display depends only on them and
// on the time:
//
//	fact.go                               the facts
//	model.go  member.go  term.go  fold.go the state that follows from them
//	frame.go  layout.go                   a frame of a given size at a given moment
//	headline.go  lease.go  lanes.go  cells.go  axis.go  changes.go  news.go  legend.go   its parts
//	ink.go  text.go                       colors and widths
//	run.go                                the terminal: keys, sizes, ten frames a second
package view
