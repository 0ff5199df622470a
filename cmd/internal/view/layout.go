package view

// part is a part of the frame that takes lines from the top to the bottom in the order of parts.
type part int

const (
	partTitle part = iota
	partRule
	partHeadline
	partLease
	partBanner
	partSpace
	partLanes
	partAxis
	partSpace2
	partFailovers
	partSpace3
	partNews
	partSpace4
	partHints
	partLegend
	parts
)

// wish is a number of lines for a part, besides those that it has already.
type wish struct {
	part  part
	lines int
}

// bannerLines is the maximum number of lines of the banner.
const bannerLines = 3

// wishes returns the wishes in the order of importance. The first get their lines in the smallest
// terminal; the last share the rest of a large one.
func (m *Model) wishes(f frame) []wish {
	members, alarmed := len(m.members), len(m.banner(f, bannerLines))
	return []wish{
		{partHeadline, 1}, {partBanner, min(1, alarmed)}, {partLease, 1}, {partLanes, min(2, members)}, {partLegend, 1}, {partTitle, 1},
		{partFailovers, 2}, {partLanes, min(5, members-1)}, {partAxis, 1}, {partBanner, alarmed - 1}, {partFailovers, 1}, {partSpace, 1}, {partSpace2, 1},
		{partRule, 1}, {partNews, 2}, {partHints, len(m.fitting(f))}, {partFailovers, 1}, {partSpace3, 1}, {partAxis, 1},
		{partSpace4, 1}, {partNews, 2}, {partLanes, members + 1}, {partFailovers, 4}, {partNews, f.height},
	}
}

// share gives each part its lines.
func (m *Model) share(f frame) [parts]int {
	var has [parts]int
	left := f.height
	for _, w := range m.wishes(f) {
		n := min(max(0, w.lines), left)
		if w.part == partLanes {
			n = min(n, len(m.members)+1-has[partLanes])
		}
		has[w.part] += n
		left -= n
	}
	return has
}
