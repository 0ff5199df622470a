package view

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/tenure-go/tenure/internal/story"
)

// title draws the election, and how long it has been shown.
func (m *Model) title(f frame, _ int) []string {
	s := m.screen
	left := " " + m.ink.with(strong, s.Title)
	if s.Election != "" {
		left += "  election " + strconv.Quote(s.Election)
	}
	if s.Place != "" {
		left += m.ink.with(dim, " in "+s.Place)
	}
	return []string{ends(left, m.ink.with(dim, age(f.now))+" ", f.width)}
}

// headline draws the leader, and the number of checks if there is room.
func (m *Model) headline(f frame, _ int) []string {
	left, right := " "+m.who(f.now), m.ink.with(dim, m.checked)+" "
	if width(left)+width(right)+2 > f.width {
		right = ""
	}
	return []string{ends(left, right, f.width)}
}

func (m *Model) who(now time.Duration) string {
	t := m.current()
	if t == nil {
		return m.ink.with(dim, "○ nobody leads yet"+m.because(""))
	}
	one, number := m.member(t.who), m.ink.with(dim, "  "+t.full())
	switch {
	case t.taken:
		return m.ink.with(m.alarming(now), "○ nobody leads") + m.ink.with(dim, "  for "+age(now-t.gone)+
			m.because(fmt.Sprintf("since %s %s term %s", t.who, pastOf[t.ended], t.name())))
	case t.over() && now < m.deadline(t):
		return m.ink.with(bad, stateGlyphs[stateOf(t.ended)]+" "+t.who+" "+presentOf[t.ended]) + number +
			m.ink.with(dim, "  its lease runs out")
	case t.over():
		return m.ink.with(bad, "○ nobody leads") + m.ink.with(dim, fmt.Sprintf("  the lease of %s is over", t.who))
	case t.named:
		return m.ink.with(warn, stateGlyphs[named]+" "+t.who) + number + m.ink.with(dim, "  "+story.NotConfirmed(t.written, m.began.Add(now)))
	case now >= m.deadline(t):
		return m.ink.with(bad, "○ "+t.who+" is silent") + number + m.ink.with(dim, "  its lease is over")
	case one.state == leaving:
		return m.ink.with(one.hue(), stateGlyphs[leaving]+" "+t.who+" is leaving") + number
	}
	return m.ink.with(one.hue(), stateGlyphs[leads]+" ") + m.ink.with(strong, t.who+" leads") + number + m.ink.with(dim, m.detail(t, now))
}

// alarming returns the style of a time without a leader, which is normal at a first start.
func (m *Model) alarming(now time.Duration) ink {
	if m.began.Add(now).Before(m.expected) {
		return dim
	}
	return bad
}

// because returns the reason why there is no leader, as far as it is known.
func (m *Model) because(known string) string {
	if text := cmp.Or(m.vacant, known); text != "" {
		return ", " + text
	}
	return ""
}

// detail returns how long the leader has led, and its address.
func (m *Model) detail(t *term, now time.Duration) string {
	text := "  for " + age(now-t.from)
	if t.atLeast {
		text = "  for at least " + age(now-t.from)
	}
	if t.address != "" {
		text += "  at " + t.address
	}
	return text
}

func stateOf(why What) state {
	if why == Lost {
		return follows
	}
	return states[why]
}

// How a leader ended its term.
var (
	presentOf = map[What]string{Crashed: "has died", Frozen: "is frozen", Lost: "lost the lease"}
	pastOf    = map[What]string{
		Released: "released", Nobody: "lost", Lost: "lost", Crashed: "died in", Frozen: "was frozen in",
	}
)

// banner draws overlaps, which should never occur and must not be overlooked.
func (m *Model) banner(f frame, lines int) []string {
	if m.overlaps == 0 {
		return nil
	}
	text := fmt.Sprintf("!!! OVERLAP: two leaders at once !!! (%d)", m.overlaps)
	for _, n := range m.news {
		if n.What == Overlap && n.Text != "" {
			text = fmt.Sprintf("!!! OVERLAP: two leaders at once !!! (%d)\n%s", m.overlaps, n.Text)
		}
	}
	all := strings.Split(ansi.Wrap(text, f.width-2, ""), "\n")
	for i, line := range all {
		all[i] = m.ink.with(alarm, pad(" "+line, f.width))
	}
	return all[:min(len(all), lines)]
}
