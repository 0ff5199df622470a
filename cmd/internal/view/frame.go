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

// frame is the size of a frame, and its time.
type frame struct {
	width, height int
	now           time.Duration
}

// Frame draws the state at a moment into at most so many columns and lines. Each line but the last
// ends with "\n".
func (m *Model) Frame(width, height int, now time.Time) string {
	f := frame{width: width, height: height}
	if !m.began.IsZero() {
		f.now = m.since(now)
	}
	if width < 1 || height < 1 {
		return ""
	}
	var all []string
	for p, n := range m.share(f) {
		if n > 0 {
			lines := last(m.draw(section(p), f, n), n)
			all = append(append(all, lines...), make([]string, n-len(lines))...)
		}
	}
	for i, line := range all {
		all[i] = strings.TrimRight(fit(line, width), " ")
	}
	return strings.Join(all, "\n")
}

func (m *Model) draw(p section, f frame, lines int) []string {
	draw, ok := map[section]func(frame, int) []string{
		sectionTitle: m.title, sectionRule: m.rule, sectionHeadline: m.headline, sectionLease: m.leaseBar,
		sectionBanner: m.banner, sectionLanes: m.lanes, sectionAxis: m.axis, sectionFailovers: m.failovers,
		sectionNews: m.latest, sectionHints: m.hints, sectionLegend: m.legend,
	}[p]
	if !ok {
		return make([]string, lines)
	}
	return draw(f, lines)
}

func (m *Model) rule(f frame, _ int) []string {
	return []string{m.ink.with(dim, strings.Repeat("─", f.width))}
}

// section is a part of the frame. Sections take lines from the top to the bottom, in their order.
type section int

const (
	sectionTitle section = iota
	sectionRule
	sectionHeadline
	sectionLease
	sectionBanner
	sectionSpace
	sectionLanes
	sectionAxis
	sectionSpace2
	sectionFailovers
	sectionSpace3
	sectionNews
	sectionSpace4
	sectionHints
	sectionLegend
	sections
)

// wish is a number of lines for a section, besides those that it has already.
type wish struct {
	of    section
	lines int
}

// bannerLines is the maximum number of lines of the banner.
const bannerLines = 3

// wishes returns the wishes in the order of importance. The first get their lines in the smallest
// terminal; the last share the rest of a large one.
func (m *Model) wishes(f frame) []wish {
	members, alarmed := len(m.members), len(m.banner(f, bannerLines))
	return []wish{
		{sectionHeadline, 1}, {sectionBanner, min(1, alarmed)}, {sectionLease, 1}, {sectionLanes, min(2, members)},
		{sectionLegend, 1}, {sectionTitle, 1}, {sectionFailovers, 2}, {sectionLanes, min(5, members-1)}, {sectionAxis, 1},
		{sectionBanner, alarmed - 1}, {sectionFailovers, 1}, {sectionSpace, 1}, {sectionSpace2, 1}, {sectionRule, 1},
		{sectionNews, 2}, {sectionHints, len(m.fitting(f))}, {sectionFailovers, 1}, {sectionSpace3, 1}, {sectionAxis, 1},
		{sectionSpace4, 1}, {sectionNews, 2}, {sectionLanes, members + 1}, {sectionFailovers, 4}, {sectionNews, f.height},
	}
}

// share gives each section its lines.
func (m *Model) share(f frame) [sections]int {
	var has [sections]int
	left := f.height
	for _, w := range m.wishes(f) {
		n := min(max(0, w.lines), left)
		if w.of == sectionLanes {
			n = min(n, len(m.members)+1-has[sectionLanes])
		}
		has[w.of] += n
		left -= n
	}
	return has
}

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
		how := bad
		if m.began.Add(now).Before(m.expected) { // which is normal at a first start
			how = dim
		}
		return m.ink.with(how, "○ nobody leads") + m.ink.with(dim, "  for "+age(now-t.gone)+
			m.because(fmt.Sprintf("since %s %s term %s", t.who, pastOf[t.ended], t.name())))
	case t.over() && now < m.deadline(t):
		ended := states[t.ended]
		if t.ended == Lost {
			ended = follows
		}
		return m.ink.with(bad, stateGlyphs[ended]+" "+t.who+" "+presentOf[t.ended]) + number +
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
