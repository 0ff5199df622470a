package view

import "time"

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
		l.settle(i)
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

// settle leaves a column empty if no leader takes most of it. The last column is not over yet.
func (l *timeline) settle(i int) {
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
