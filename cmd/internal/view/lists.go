package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/output"
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
		down := limit(0, false)
		if c.fact.Downtime > 0 {
			down = atLeast(c.fact.TookAtLeast, c.fact.Downtime)
		}
		line += padLeft(down, downWidth)
	}
	return line + "  " + m.compare(c.fact, f.width-width(line)-3)
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

var newsInks = map[What]ink{
	Elected: good, Named: warn, Asked: warn, Leaving: warn, Released: warn, Lost: bad, Crashed: bad, Frozen: bad, Woken: warn,
	Nobody: bad, Overlap: alarm, Alarm: alarm, Trouble: warn,
}

// latest draws the last facts, the newest at the end.
func (m *Model) latest(_ frame, lines int) []string {
	var all []string
	names := 1
	for _, one := range m.members {
		names = min(max(names, width(one.id)), maxName)
	}
	for _, f := range last(m.news, lines) {
		how := newsInks[f.What]
		if f.What == Nobody && !f.Expected.IsZero() {
			how = dim
		}
		line := " " + m.ink.with(dim, f.At.Local().Format("15:04:05.000")) + "  " + pad(cmp.Or(f.Who, "-"), names) + "  " +
			m.ink.with(how, pad(string(f.What), len(Released)))
		if text := m.told(f); text != "" {
			line += "  " + text
		}
		all = append(all, line)
	}
	return all
}

// told returns the text of a fact. For an election it is the term, not the reason.
func (m *Model) told(f Fact) string {
	t := m.numbered(f.Term)
	switch {
	case f.What != Elected || t == nil:
		return f.Text
	case f.AtLeast:
		return t.full() + ", at least since then"
	}
	return t.full()
}

// legend draws the key that ends the view, and explains the signs of the timeline that were used.
func (m *Model) legend(f frame, _ int) []string {
	line := " " + m.ink.with(strong, "q") + m.ink.with(dim, " ends")
	for _, one := range []struct {
		sign, text string
		what       What
	}{
		{signCrash, "crash", Crashed}, {signFreeze, "pause", Frozen}, {signLeft, "release", Released}, {signLost, "lost", Lost},
		{signWaiting, "lease runs out", ""}, {signNobody, "nobody leads", Nobody},
	} {
		next := "   " + m.ink.with(markInk(one.what), one.sign) + m.ink.with(dim, " "+one.text)
		if m.used(one.sign) && width(line)+width(next) <= f.width {
			line += next
		}
	}
	return []string{line}
}

// used reports whether the timeline shows a sign. Times without a leader are shown from the
// beginning.
func (m *Model) used(sign string) bool {
	return sign == signWaiting || sign == signNobody || slices.ContainsFunc(m.marks, func(k mark) bool { return signs[k.what] == sign })
}

// hints draws commands to type in another terminal. It leaves out those that are too long, since a
// part of a command is useless.
func (m *Model) hints(f frame, lines int) []string {
	var all []string
	for _, text := range m.fitting(f) {
		if len(all) < lines {
			all = append(all, " "+m.ink.with(dim, text))
		}
	}
	return all
}

func (m *Model) fitting(f frame) []string {
	var all []string
	for _, text := range m.screen.Hints {
		if text = output.Plain(text); width(text)+2 <= f.width {
			all = append(all, text)
		}
	}
	return all
}
