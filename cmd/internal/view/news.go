package view

var newsInks = map[What]ink{
	Elected: good, Named: warn, Asked: warn, Leaving: warn, Released: warn, Lost: bad, Crashed: bad, Frozen: bad, Woken: warn,
	Nobody: bad, Overlap: alarm, Alarm: alarm, Trouble: warn,
}

// latest draws the last facts, the newest at the end.
func (m *Model) latest(_ frame, lines int) []string {
	var all []string
	for _, f := range last(m.news, lines) {
		who := f.Who
		if who == "" {
			who = "-"
		}
		line := " " + m.ink.with(dim, f.At.Local().Format("15:04:05.000")) + "  " + pad(who, m.newsName()) + "  " +
			m.ink.with(newsInk(&f), pad(string(f.What), len(Released)))
		if text := m.told(f); text != "" {
			line += "  " + text
		}
		all = append(all, line)
	}
	return all
}

func newsInk(f *Fact) ink {
	if f.What == Nobody && !f.Expected.IsZero() {
		return dim
	}
	return newsInks[f.What]
}

func (m *Model) newsName() int {
	w := 1
	for _, one := range m.members {
		w = max(w, width(one.id))
	}
	return min(w, maxName)
}

// sinceBefore says that a term began before the fact.
func sinceBefore(f Fact) string {
	if !f.AtLeast {
		return ""
	}
	return ", at least since then"
}

// told returns the text of a fact. For an election it is the term, not the reason.
func (m *Model) told(f Fact) string {
	if t := m.numbered(f.Term); f.What == Elected && t != nil {
		return t.full() + sinceBefore(f)
	}
	return f.Text
}
