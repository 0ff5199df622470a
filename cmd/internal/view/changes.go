package view

import (
	"cmp"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/story"
	"github.com/tenure-go/tenure/internal/units"
)

// Widths of the columns of failovers.
const (
	kindWidth  = 9
	tookWidth  = 9
	leastWidth = 9
	downWidth  = 9
)

// failovers draws the last changes of leader, the newest first, with the time that each took and
// the least possible time.
func (m *Model) failovers(f frame, lines int) []string {
	w := m.changeWidths(f.width)
	all := []string{m.ink.with(dim, w.head())}
	for i := len(m.changes) - 1; i >= 0 && len(all) < lines; i-- {
		all = append(all, m.change(m.changes[i], f, w))
	}
	if len(m.changes) == 0 && lines > 1 {
		all = append(all, m.ink.with(dim, " none yet"))
	}
	return all
}

// changeWidths are the columns of failovers. Those of facts that no failover has are left out.
type changeWidths struct {
	names      int
	most, down bool
}

func (m *Model) changeWidths(across int) changeWidths {
	w := changeWidths{names: width("failover")}
	for _, c := range m.changes {
		w.names = max(w.names, width(c.from)+width(c.to)+3)
		w.most, w.down = w.most || c.fact.Most > 0, w.down || c.fact.Downtime > 0
	}
	w.names = min(w.names, max(width("failover"), across/3))
	return w
}

func (w changeWidths) head() string {
	head := " " + pad("failover", w.names) + "  " + pad("", kindWidth) + padLeft("took", tookWidth) + padLeft("least", leastWidth)
	if w.most {
		head += padLeft("most", leastWidth)
	}
	if w.down {
		head += padLeft("no lease", downWidth)
	}
	return head
}

func (m *Model) change(c change, f frame, w changeWidths) string {
	who := m.ink.with(m.member(c.from).hue(), c.from) + " → " + m.ink.with(m.member(c.to).hue(), c.to)
	line := " " + pad(who, w.names) + "  " + pad(cmp.Or(c.fact.Text, "-"), kindWidth)
	if c.fact.Took <= 0 {
		return line + m.ink.with(dim, padLeft("-", tookWidth))
	}
	line += m.ink.with(strong, padLeft(atLeast(c.fact.TookAtLeast, c.fact.Took), tookWidth)) + padLeft(limit(c.fact.Least, c.fact.Least >= 0), leastWidth)
	if w.most {
		line += padLeft(limit(c.fact.Most, c.fact.Most > 0), leastWidth)
	}
	if w.down {
		line += padLeft(downtime(&c.fact), downWidth)
	}
	return line + "  " + m.compare(c.fact, f.width-width(line)-3)
}

func downtime(f *Fact) string {
	if f.Downtime <= 0 {
		return limit(0, false)
	}
	return atLeast(f.TookAtLeast, f.Downtime)
}

// atLeast formats a time. It says if that is only the least that it can have been.
func atLeast(only bool, d time.Duration) string {
	if only {
		return "≥" + units.Seconds(d)
	}
	return units.Seconds(d)
}

func limit(d time.Duration, known bool) string {
	if !known {
		return "-"
	}
	return units.Seconds(d)
}

// compare draws a failover as a line: thin for the least possible time, thick for the rest. The
// rest has a color if it is longer than it should be. All lines have one scale.
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
	how := strong
	if story.Tardy(f.Took, f.Least, f.Late) {
		how = warn
	}
	return m.ink.with(dim, strings.Repeat("─", thin)) + m.ink.with(how, strings.Repeat("━", thick))
}
