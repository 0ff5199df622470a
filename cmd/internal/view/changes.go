package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/units"
)

// Widths of the columns of failovers.
const (
	kindWidth  = 9
	tookWidth  = 9
	leastWidth = 9
)

// failovers draws the last changes of leader, the newest first, with the time that each took and
// the least possible time.
func (m *Model) failovers(f frame, lines int) []string {
	names := m.changeWidth(f.width)
	most := slices.ContainsFunc(m.changes, func(c change) bool { return c.fact.Most > 0 })
	all := []string{m.ink.with(dim, m.changeHead(names, most))}
	for i := len(m.changes) - 1; i >= 0 && len(all) < lines; i-- {
		all = append(all, m.change(m.changes[i], f, names, most))
	}
	if len(m.changes) == 0 && lines > 1 {
		all = append(all, m.ink.with(dim, " none yet"))
	}
	return all
}

func (m *Model) changeWidth(across int) int {
	w := width("failover")
	for _, c := range m.changes {
		w = max(w, width(c.from)+width(c.to)+3)
	}
	return min(w, max(width("failover"), across/3))
}

func (m *Model) changeHead(names int, most bool) string {
	head := " " + pad("failover", names) + "  " + pad("", kindWidth) + padLeft("took", tookWidth) + padLeft("least", leastWidth)
	if most {
		head += padLeft("most", leastWidth)
	}
	return head
}

func (m *Model) change(c change, f frame, names int, most bool) string {
	who := m.ink.with(m.member(c.from).hue(), c.from) + " → " + m.ink.with(m.member(c.to).hue(), c.to)
	line := " " + pad(who, names) + "  " + pad(cmp.Or(c.fact.Text, "-"), kindWidth)
	if c.fact.Took <= 0 {
		return line + m.ink.with(dim, padLeft("-", tookWidth))
	}
	line += m.ink.with(strong, padLeft(units.Seconds(c.fact.Took), tookWidth)) + padLeft(limit(c.fact.Least, c.fact.Least >= 0), leastWidth)
	if most {
		line += padLeft(limit(c.fact.Most, c.fact.Most > 0), leastWidth)
	}
	return line + "  " + m.compare(c.fact, f.width-width(line)-3)
}

func limit(d time.Duration, known bool) string {
	if !known {
		return "-"
	}
	return units.Seconds(d)
}

// compare draws a failover as a line: thin for the least possible time, thick for the rest. All
// lines have one scale.
func (m *Model) compare(f Fact, room int) string {
	if room < 8 {
		return ""
	}
	whole := m.screen.Lease
	for _, c := range m.changes {
		whole = max(whole, c.fact.Took)
	}
	columns := func(d time.Duration) int {
		return int(float64(room) * float64(max(0, d)) / float64(max(whole, time.Millisecond)))
	}
	thin := min(columns(f.Least), max(0, columns(f.Took)-1))
	thick := max(1, columns(f.Took)-thin)
	return m.ink.with(dim, strings.Repeat("─", thin)) + m.ink.with(strong, strings.Repeat("━", thick))
}
