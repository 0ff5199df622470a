package demo

import "github.com/tenure-go/tenure"

// style is the style of a text, as the parameters of the terminal's escape sequence.
type style string

const (
	plain  style = ""
	dim    style = "2"
	good   style = "1;32"
	bad    style = "31"
	alarm  style = "1;97;41"
	action style = "1;36"
	waning style = "33"
	store  style = "35"
)

// palette is true if there are colors.
type palette bool

func (p palette) with(s style, text string) string {
	if !p || s == plain {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

var styles = map[tenure.EventKind]style{
	tenure.EventCandidate: dim, tenure.EventLeader: dim, tenure.EventWaiting: dim,
	tenure.EventElected: good,
	tenure.EventLeaving: waning, tenure.EventReleased: waning,
	tenure.EventLost: bad, tenure.EventFailed: bad,
	tenure.EventTrouble: store,
	tenure.EventOverdue: alarm, tenure.EventAlarm: alarm,
}

var deedStyles = map[do]style{
	doStart: dim, doKill: action, doPause: action, doResume: action, doStop: action,
	doDied: bad, doOutput: bad, doStore: store, doPeer: store, doAdvise: waning, doUnseen: waning,
}
