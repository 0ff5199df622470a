package view

import (
	"slices"

	"github.com/tenure-go/tenure/cmd/internal/output"
)

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
