package view

import (
	"strings"
	"time"
)

// Eighths of a column, from the left.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

const leaseLabel = " lease "

// leaseBar draws the time that is left of the lease, as an observer can know it: it counts from the
// last renewal that was seen, and each renewal fills the bar again.
func (m *Model) leaseBar(f frame, _ int) []string {
	whole, left, how := m.leaseLeft(f.now)
	text := m.leaseText(whole, left)
	if t := m.current(); t == nil || t.taken {
		text = padLeft("none held", width(text))
	}
	room := f.width - width(leaseLabel) - width(text) - 3
	if room < 3 {
		return []string{fit(leaseLabel+text, f.width)}
	}
	return []string{m.ink.with(dim, leaseLabel) + m.bar(room, float64(left)/float64(whole), how) + "  " + text}
}

// leaseLeft returns the whole lease and the time left of it, or 0 if there is no leader.
func (m *Model) leaseLeft(now time.Duration) (whole, left time.Duration, how ink) {
	t, whole := m.current(), max(m.screen.Lease, time.Millisecond)
	if t == nil || t.taken {
		return whole, 0, dim
	}
	if m.renewal.term == t.token {
		whole = max(m.renewal.lease, time.Millisecond)
	}
	left = min(whole, max(0, m.deadline(t)-now))
	switch {
	case t.over():
		return whole, left, bad
	case t.named: // the most that can be left
		return whole, left, dim
	}
	return whole, left, m.member(t.who).hue()
}

// leaseText returns a text that always has the same width, so that the bar does not move.
func (m *Model) leaseText(whole, left time.Duration) string {
	text, all := age(left), brief(whole)
	if left > 0 && whole >= 10*time.Second {
		text = age(left.Truncate(time.Second)) // it need not change ten times a second
		text = strings.Replace(text, ".0 s", " s", 1)
	}
	return padLeft(text, max(width("9.9 s"), width(all))) + " of " + all
}

// bar is filled to a part of the whole.
func (m *Model) bar(columns int, part float64, how ink) string {
	n := int(part*float64(columns)*8 + 0.5)
	full := strings.Repeat(signLed, min(columns, n/8))
	if n/8 < columns {
		full += eighths[n%8]
	}
	return m.ink.with(how, full) + m.ink.with(dim, strings.Repeat(signWaiting, columns-width(full)))
}
