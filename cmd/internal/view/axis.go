package view

import "time"

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
