package view

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Signs of the timeline. They differ also without colors.
const (
	signLed     = "█"
	signWaiting = "░"
	signNobody  = "╍"
	signCrash   = "✗"
	signFreeze  = "‖"
	signLeft    = "▸"
	signLost    = "×"
	signOverlap = "!"
)

var signs = map[What]string{
	Crashed: signCrash, Frozen: signFreeze, Released: signLeft, Lost: signLost, Nobody: signLost, Overlap: signOverlap,
}

// columns are the widths of the parts of a lane.
type columns struct{ name, state, time int }

// Widths of the columns before the timeline.
const (
	maxName    = 16
	stateWidth = len("leaving")
	wideEnough = 60 // for the state in words
)

func (m *Model) columns(across int) columns {
	c := columns{name: width(nobodyLane)}
	for _, one := range m.members {
		c.name = max(c.name, width(one.id))
	}
	c.name = min(c.name, maxName, across/3)
	if across >= wideEnough {
		c.state = stateWidth
	}
	c.time = max(0, across-c.before()-1)
	return c
}

// before returns the width of a sign, a name, a state, and the spaces between them.
func (c columns) before() int {
	n := 3 + c.name + 2
	if c.state > 0 {
		n += c.state + 2
	}
	return n
}

const nobodyLane = "nobody"

// lanes draws a line for each member, or for those that led last if there is less room. If there is
// more room, one line shows the times without a leader.
func (m *Model) lanes(f frame, lines int) []string {
	c := m.columns(f.width)
	l := m.timeline(c.time, f.now)
	shown := m.shown(lines)
	var all []string
	for _, one := range shown {
		all = append(all, m.lane(one, c, l))
	}
	if lines > len(all) && len(shown) == len(m.members) {
		all = append(all, m.nobody(c, l))
	}
	return all
}

// shown returns the members that led last, in the order of their appearance.
func (m *Model) shown(most int) []*member {
	if len(m.members) <= most {
		return m.members
	}
	latest := map[string]int{}
	for i := range m.terms {
		latest[m.terms[i].who] = i + 1
	}
	by := slices.Clone(m.members)
	slices.SortStableFunc(by, func(a, b *member) int { return cmp.Compare(latest[b.id], latest[a.id]) })
	by = by[:max(0, most)]
	slices.SortFunc(by, func(a, b *member) int { return cmp.Compare(a.index, b.index) })
	return by
}

// lane draws one member: its state, and when it led.
func (m *Model) lane(one *member, c columns, l *timeline) string {
	row := make([]piece, len(l.cells))
	for i, cell := range l.cells {
		switch {
		case cell.term == nil || cell.term.who != one.id:
		case cell.led:
			row[i] = piece{one.hue(), signLed}
		default:
			row[i] = piece{one.hue(), signWaiting}
		}
	}
	for _, k := range m.marks {
		if i := l.column(k.at); k.who == one.id && i >= 0 && i < len(row) {
			row[i] = piece{markInk(k.what), signs[k.what]}
		}
	}
	state := m.stands(one, l.now)
	return m.before(c, one.ink(state), stateGlyphs[state], one.id, string(state)) + m.row(row)
}

// stands returns the state of a member. A leader that has not renewed for a lease is silent.
func (m *Model) stands(one *member, now time.Duration) state {
	if t := m.current(); m.leading(one.id) && !t.named && now >= m.deadline(t) {
		return silent
	}
	return one.state
}

// ink returns the style of a member in a state; idle members are dim.
func (one *member) ink(s state) ink {
	switch s {
	case leads, leaving:
		return one.hue()
	case frozen, down, silent:
		return bad
	}
	return dim
}

func markInk(what What) ink {
	switch what {
	case Overlap:
		return alarm
	case Released:
		return strong
	case "":
		return plain
	}
	return bad
}

// nobody draws the times that are known to be without a leader.
func (m *Model) nobody(c columns, l *timeline) string {
	row := make([]piece, len(l.cells))
	for i, cell := range l.cells {
		if !cell.past && (cell.term == nil || !cell.led && !cell.term.named && !cell.term.silent) {
			row[i] = piece{bad, signNobody}
		}
	}
	return m.before(c, dim, " ", nobodyLane, "") + m.row(row)
}

func (m *Model) before(c columns, how ink, glyph, name, state string) string {
	text := " " + glyph + " " + pad(name, c.name) + blanks(2)
	if c.state > 0 {
		text += pad(state, c.state) + blanks(2)
	}
	return m.ink.with(how, text)
}

// piece is a sign in a color. An empty sign is a blank.
type piece struct {
	ink  ink
	sign string
}

// row writes neighboring pieces of one color together.
func (m *Model) row(pieces []piece) string {
	var line strings.Builder
	for i := 0; i < len(pieces); {
		how, run := pieces[i].ink, ""
		for ; i < len(pieces) && pieces[i].ink == how; i++ {
			run += cmp.Or(pieces[i].sign, " ")
		}
		line.WriteString(m.ink.with(how, run))
	}
	return line.String()
}

// cell is one column of the timeline.
type cell struct {
	// term is the one that takes most of the column; nil if no leader does.
	term *term
	led  bool // false: the leader is gone or was not seen to renew, and its lease runs out
	past bool // before the first fact
	most time.Duration
}

// timeline holds the columns up to now. They begin at multiples of step, so the display moves by
// whole columns.
type timeline struct {
	cells []cell
	start time.Duration // of the first column
	step  time.Duration
	now   time.Duration
}

// leaseColumns is how many columns a lease takes.
const leaseColumns = 2

func (m *Model) timeline(columns int, now time.Duration) *timeline {
	step := max(m.screen.Lease/leaseColumns, time.Millisecond)
	first := now/step - time.Duration(columns) + 1
	if now < 0 {
		first--
	}
	l := &timeline{cells: make([]cell, max(0, columns)), start: first * step, step: step, now: now}
	for i := range m.terms {
		l.add(&m.terms[i], m)
	}
	for i := range l.cells {
		l.decide(i)
	}
	return l
}

// add enters the time in which a leader led, and the time in which the others waited for the end of
// its lease.
func (l *timeline) add(t *term, m *Model) {
	until, gone := min(l.now, m.deadline(t)), l.now
	if t.over() {
		until = t.until
	}
	if t.taken {
		gone = t.gone
	} else if t.over() {
		gone = min(l.now, max(until, m.deadline(t)))
	}
	l.cover(t, !t.named, t.from, until)
	l.cover(t, false, until, gone)
}

// cover gives a column to the state that takes most of it, so that no column seems to show two
// leaders.
func (l *timeline) cover(t *term, led bool, from, until time.Duration) {
	for i := max(0, l.column(from)); i < len(l.cells) && l.begin(i) < until; i++ {
		part := min(until, l.begin(i)+l.step) - max(from, l.begin(i))
		if c := &l.cells[i]; part > 0 && part >= c.most {
			c.term, c.led, c.most = t, led, part
		}
	}
}

// decide leaves a column empty if no leader takes most of it. The last column is not over yet.
func (l *timeline) decide(i int) {
	c := &l.cells[i]
	whole := min(l.step, l.now-l.begin(i))
	if 2*c.most < whole {
		c.term = nil
	}
	c.past = l.begin(i)+l.step <= 0
}

func (l *timeline) begin(i int) time.Duration { return l.start + time.Duration(i)*l.step }

// column returns the index of the column at a time, which may be outside of the cells.
func (l *timeline) column(at time.Duration) int {
	if at < l.start {
		return -1
	}
	return int((at - l.start) / l.step)
}

// axisEvery is how many columns there are from one label of the axis to the next.
const axisEvery = 20

// axis draws how long ago each column is, and which term began there.
func (m *Model) axis(f frame, lines int) []string {
	c := m.columns(f.width)
	var all []string
	if numbers := m.numbers(m.timeline(c.time, f.now)); lines > 1 && numbers != "" {
		all = append(all, blanks(c.before())+m.ink.with(dim, numbers))
	}
	return append(all, blanks(c.before())+m.ink.with(dim, m.times(c.time)))
}

// numbers draws the numbers of the terms, as far as there is room.
func (m *Model) numbers(l *timeline) string {
	line := ""
	for i := range m.terms {
		at, name := l.column(m.terms[i].from), m.terms[i].name()
		room := len(l.cells)
		if i+1 < len(m.terms) {
			room = l.column(m.terms[i+1].from) - 1
		}
		if at >= len(line) && at+len(name) <= room {
			line += blanks(at-len(line)) + name + " "
		}
	}
	return line
}

func (m *Model) times(columns int) string {
	step := max(m.screen.Lease/leaseColumns, time.Millisecond)
	line := padLeft("now", columns)
	for back := axisEvery; back < columns; back += axisEvery {
		label := "-" + brief(time.Duration(back)*step)
		if end := columns - back; end >= len(label) {
			line = line[:end-len(label)] + label + line[end:]
		}
	}
	return line
}
