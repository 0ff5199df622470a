package view

import (
	"strings"
	"time"
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
			lines := last(m.draw(part(p), f, n), n)
			all = append(append(all, lines...), make([]string, n-len(lines))...)
		}
	}
	for i, line := range all {
		all[i] = strings.TrimRight(fit(line, width), " ")
	}
	return strings.Join(all, "\n")
}

func (m *Model) draw(p part, f frame, lines int) []string {
	draw, ok := map[part]func(frame, int) []string{
		partTitle: m.title, partRule: m.rule, partHeadline: m.headline, partLease: m.leaseBar, partBanner: m.banner,
		partLanes: m.lanes, partAxis: m.axis, partFailovers: m.failovers, partNews: m.latest, partHints: m.hints,
		partLegend: m.legend,
	}[p]
	if !ok {
		return make([]string, lines)
	}
	return draw(f, lines)
}

func (m *Model) rule(f frame, _ int) []string {
	return []string{m.ink.with(dim, strings.Repeat("─", f.width))}
}
