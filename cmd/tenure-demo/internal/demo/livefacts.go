package demo

import (
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/view"
)

// The facts of the view for deeds and events. Other deeds and events are not shown.
var (
	factsOfDeeds = map[do]view.What{
		doStart: view.Started, doKill: view.Crashed, doPause: view.Frozen, doResume: view.Woken, doStop: view.Asked,
		doDied: view.Crashed, doOutput: view.Trouble, doStore: view.Trouble, doPeer: view.Trouble,
		doAdvise: view.Note, doUnseen: view.Note,
	}
	factsOfEvents = map[tenure.EventKind]view.What{
		tenure.EventCandidate: view.Follows, tenure.EventElected: view.Elected, tenure.EventLeaving: view.Leaving,
		tenure.EventReleased: view.Released, tenure.EventLost: view.Lost, tenure.EventOverdue: view.Alarm,
		tenure.EventAlarm: view.Alarm, tenure.EventFailed: view.Alarm, tenure.EventTrouble: view.Trouble,
	}
)

func (l *live) show(e entry, f *failover) {
	switch {
	case e.deed != nil && !e.deed.expected:
		l.showDeed(e)
	case e.event != nil && !l.repetitive(e.event):
		l.showEvent(e, f)
	}
}

func (l *live) showDeed(e entry) {
	d := e.deed
	what, ok := factsOfDeeds[d.do]
	if !ok {
		return
	}
	l.asked[d.id] = d.do == doStop || l.asked[d.id] && d.do != doStart
	l.tell(view.Fact{At: moment(e.at), What: what, Who: d.id, Term: d.term, Text: d.tell(l.lease)})
	switch d.do {
	case doOutput, doAdvise:
		l.kept.show(e)
	}
}

func (l *live) showEvent(e entry, f *failover) {
	what, ok := factsOfEvents[e.event.Kind]
	if !ok {
		return
	}
	fact := view.Fact{At: moment(e.at), What: what, Who: e.event.ID, Term: e.event.Term, Text: l.why(e.event, nil)}
	if f != nil {
		fact.Text, fact.Took, fact.Least, fact.Most = string(f.kind), f.took, f.least, f.most
		fact.Late = max(0, f.most-f.least)
		if !f.known {
			fact.Least = -1
		}
	}
	if what == view.Elected {
		l.terms.name(e.event.Term) // counts the term, as the view does
	}
	l.tell(fact)
	switch {
	case what == view.Released && l.asked[fact.Who]:
		l.tell(view.Fact{At: fact.At, What: view.Ended, Who: fact.Who})
	case what == view.Alarm:
		l.kept.show(e)
	}
}

// see shows a renewal, and the number of checks so far.
func (l *live) see(e entry, acts int) {
	s := e.sight
	if !s.held || s.nonce == l.nonce {
		return
	}
	l.nonce = s.nonce
	at := moment(e.at)
	l.tell(view.Fact{At: at, What: view.Renewed, Term: s.term, Lease: s.lease, Address: s.address})
	l.tell(view.Fact{At: at, What: view.Checked, Text: count(l.overlaps, "overlap") + " in " + count(acts, "act")})
}
