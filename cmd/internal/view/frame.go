package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/story"
	"github.com/tenure-go/tenure/internal/units"
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
