package main

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/internal/protocol"
)

// kind is what happens in a move.
type kind uint8

const (
	pass     kind = iota // true time passes
	ring                 // a timer of a member that is due rings
	arrive               // a request arrives at the register
	repeat               // the same, and the request stays on its way: it will arrive again
	answer               // an answer arrives at its member
	fail                 // a member learns that its request failed; it may still arrive
	finish               // the work of a member ends
	crash                // a process dies; everything that it sent may still arrive
	restart              // it starts again
	freeze               // a process is stopped
	thaw                 // it goes on
	cut                  // a member no longer reaches the register
	heal                 // it does again
	hold                 // a message is delayed by any time
	order                // an operator asks for a hand-over
	purge                // an operator deletes the record
	recreate             // an operator deletes the register, and creates it again
	restore              // the register moves to a standby that lacks the last write
	wreck                // the record is damaged
	reset                // an operator resets a damaged election
	stale                // a read arrives, and gets the state before the last write
)

// move is one step of the world. Of is a member, or the place of a message on the net.
type move struct {
	kind kind
	of   uint8
}

// moves returns everything that may happen next.
func (w *world) moves() (all []move) {
	for i := range w.net {
		all = append(all, w.messageMoves(i)...)
	}
	for i := range w.members {
		all = append(all, w.memberMoves(i)...)
	}
	if w.left.Orders > 0 && w.cell.Kind == protocol.Valid && w.cell.Record.Held() && w.cell.Record.Request == nil {
		all = append(all, move{kind: order})
	}
	if w.left.Purges > 0 && w.cell.Kind == protocol.Valid {
		all = append(all, move{kind: purge})
	}
	held := w.cell.Kind == protocol.Valid && w.cell.Record.Held()
	for _, f := range []struct {
		kind kind
		may  bool
	}{
		{recreate, w.left.Recreations > 0 && w.cell.Kind == protocol.Valid},
		{restore, w.left.Restores > 0 && w.writes > 0},
		{wreck, w.left.Wrecks > 0 && held},
		{reset, w.cell.Kind == protocol.Malformed},
	} {
		if f.may {
			all = append(all, move{kind: f.kind})
		}
	}
	if w.next() <= w.model.until && !w.busy() {
		all = append(all, move{kind: pass})
	}
	return all
}

// busy reports whether something must happen before true time passes: only what is frozen, cut off
// or held may take longer than no time.
func (w *world) busy() bool {
	for i := range w.net {
		m := &w.net[i]
		p := &w.members[m.from]
		here := p.alive && p.life == m.life
		if !m.held && !(here && (p.cut || p.frozen && m.answered)) {
			return true
		}
	}
	for i := range w.members {
		if p := &w.members[i]; p.alive && !p.frozen && p.timed && w.clock(i).Mono >= p.wake {
			return true
		}
	}
	return false
}

func (w *world) messageMoves(i int) (all []move) {
	of, m := uint8(i), &w.net[i]
	p := &w.members[m.from]
	if p.cut && p.life == m.life { // its messages wait for the end of the cut
		return nil
	}
	if w.left.Holds > 0 && !m.held {
		all = append(all, move{hold, of})
	}
	if m.answered {
		if !p.frozen {
			all = append(all, move{answer, of})
		}
		return all
	}
	all = append(all, move{arrive, of})
	if w.left.Stale > 0 && !m.op.Write && w.writes > 0 {
		all = append(all, move{stale, of})
	}
	if w.left.Repeats > 0 && m.op.Write {
		all = append(all, move{repeat, of})
	}
	if w.left.Failures > 0 && p.alive && !p.frozen && p.life == m.life && p.m.Current(m.op.ID) {
		all = append(all, move{fail, of})
	}
	return all
}

func (w *world) memberMoves(i int) (all []move) {
	of, p := uint8(i), &w.members[i]
	switch {
	case !p.alive:
		return []move{{restart, of}}
	case p.frozen:
		return []move{{thaw, of}}
	case p.timed && w.clock(i).Mono >= p.wake:
		all = append(all, move{ring, of})
	}
	if p.working != 0 && (p.stopping || w.left.Finishes > 0) {
		all = append(all, move{finish, of})
	}
	if w.left.Freezes > 0 {
		all = append(all, move{freeze, of})
	}
	switch {
	case p.cut:
		all = append(all, move{heal, of})
	case w.left.Cuts > 0:
		all = append(all, move{cut, of})
	}
	if w.left.Crashes > 0 {
		all = append(all, move{crash, of})
	}
	return all
}

// after returns the world after a move.
func (w *world) after(v move) *world {
	c := w.clone()
	c.do(v)
	c.check()
	return c
}

func (w *world) do(v move) {
	i := int(v.of)
	switch v.kind {
	case pass:
		w.now = w.next()
	case ring:
		w.tell(i, (*protocol.Machine).Tick)
	case arrive:
		w.apply(i)
		w.tidy()
	case repeat:
		w.left.Repeats--
		w.net = append(w.net, w.net[i])
		w.apply(i)
		w.tidy()
	case answer:
		w.deliver(i)
	case fail:
		w.left.Failures--
		m := w.net[i]
		w.tell(m.from, func(to *protocol.Machine, now clock.Reading) { m.fail(to, now) })
	case finish:
		w.finish(i)
	case crash:
		w.left.Crashes--
		p := &w.members[i]
		*p = member{life: p.life}
		w.tidy()
	case restart:
		w.boot(i)
	case freeze:
		w.left.Freezes--
		w.members[i].frozen = true
	case thaw:
		w.members[i].frozen = false
	case cut:
		w.left.Cuts--
		w.members[i].cut = true
	case heal:
		w.members[i].cut = false
	case hold:
		w.left.Holds--
		w.net[i].held = true
	case order:
		w.left.Orders--
		w.order("")
		w.tidy()
	case purge:
		w.left.Purges--
		w.put(protocol.Cell{})
		w.tidy()
	default:
		w.damage(v.kind, i)
		w.tidy()
	}
}

// damage carries out what a sound register never does.
func (w *world) damage(k kind, i int) {
	switch k {
	case recreate:
		w.left.Recreations--
		w.recreate()
	case restore:
		w.left.Restores--
		w.restore()
	case wreck:
		w.left.Wrecks--
		w.wreck()
	case reset:
		w.reset()
	case stale:
		w.left.Stale--
		w.net[i].answered, w.net[i].outcome, w.net[i].cell = true, protocol.Applied, w.before
	}
}

func (w *world) deliver(i int) {
	m := w.net[i]
	w.net = slices.Delete(w.net, i, i+1)
	w.tell(m.from, func(to *protocol.Machine, now clock.Reading) {
		switch {
		case m.push:
			to.Seen(now, m.cell)
		case m.op.Write:
			to.WriteDone(now, m.op.ID, m.version, m.outcome, nil)
		default:
			to.ReadDone(now, m.op.ID, m.cell, m.outcome, nil)
		}
	})
}

func (m *message) fail(to *protocol.Machine, now clock.Reading) {
	if m.op.Write {
		to.WriteDone(now, m.op.ID, "", protocol.Unknown, errFailed)
	} else {
		to.ReadDone(now, m.op.ID, protocol.Cell{}, protocol.Unknown, errFailed)
	}
}

func (w *world) finish(i int) {
	p := &w.members[i]
	if !p.stopping {
		w.left.Finishes--
	}
	p.working, p.stopping = 0, false
	w.tell(i, func(m *protocol.Machine, now clock.Reading) { m.Finish(now, "", true, 0) })
}

// name returns the words for a move in the world before it.
func (w *world) name(v move) string {
	i := int(v.of)
	member := ""
	if i < len(w.members) { // otherwise i is the place of a message
		member = fmt.Sprintf("%c%d", 'a'+i, w.members[i].life)
	}
	switch v.kind {
	case pass:
		return fmt.Sprintf("%v pass", w.next()-w.now)
	case ring:
		return member + "'s timer rings"
	case arrive:
		return w.net[i].String() + " arrives"
	case repeat:
		return w.net[i].String() + " arrives, and will once more"
	case answer:
		if w.net[i].push {
			return w.net[i].String() + " comes"
		}
		return w.net[i].String() + " is answered"
	case fail:
		return w.net[i].String() + " seems to fail"
	case finish:
		return member + "'s work ends"
	case crash:
		return member + " crashes"
	case restart:
		return fmt.Sprintf("%c%d starts", 'a'+i, w.members[i].life+1)
	case freeze:
		return member + " freezes"
	case thaw:
		return member + " goes on"
	case cut:
		return member + " is cut off"
	case heal:
		return member + " reaches the register again"
	case hold:
		return w.net[i].String() + " is held up"
	case order:
		return "an operator asks for a hand-over"
	case recreate:
		return "the register is recreated"
	case restore:
		return "a standby without the last write takes over"
	case wreck:
		return "the record is damaged"
	case reset:
		return "an operator resets the election"
	case stale:
		return w.net[i].String() + " gets the state before the last write"
	}
	return "an operator deletes the record"
}

func (m *message) String() string {
	if m.push {
		return fmt.Sprintf("the push of version %s to %c%d", m.cell.Version, 'a'+m.from, m.life)
	}
	text := "read"
	switch r := &m.op.Record; {
	case !m.op.Write:
	case r.Released:
		text = fmt.Sprintf("release of term %d", r.Term)
	case r.LeaderID == "":
		text = "vacant record"
	case r.Seq == 1:
		text = fmt.Sprintf("claim of term %d", r.Term)
	default:
		text = fmt.Sprintf("renewal %d of term %d", r.Seq, r.Term)
	}
	return fmt.Sprintf("%c%d's %s", 'a'+m.from, m.life, text)
}
