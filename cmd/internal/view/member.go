package view

// member is a candidate.
type member struct {
	id    string
	index int // in the order of appearance; it decides the color
	state state
}

// state is the state of a member, as the word that is shown.
type state string

const (
	unheard  state = ""
	starts   state = "starts"
	follows  state = "follows"
	leads    state = "leads"
	leaving  state = "leaving"
	frozen   state = "frozen"
	down     state = "down"
	finished state = "ended"
	silent   state = "silent"
	named    state = "named"
)

var stateGlyphs = map[state]string{
	unheard: "·", starts: "◌", follows: "○", leads: "●", leaving: "◐", frozen: "‖", down: "✗", finished: "·", silent: "?", named: "?",
}

// states maps a member's facts to its state. After a member has led, its state is unknown until its
// next fact.
var states = map[What]state{
	Started: starts, Follows: follows, Elected: leads, Named: named, Leaving: leaving, Released: unheard, Lost: unheard,
	Crashed: down, Frozen: frozen, Woken: follows, Ended: finished,
}

// member returns the member with an ID, and adds it if it is new.
func (m *Model) member(id string) *member {
	for _, one := range m.members {
		if one.id == id {
			return one
		}
	}
	one := &member{id: id, index: len(m.members)}
	m.members = append(m.members, one)
	return one
}
