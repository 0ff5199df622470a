package view

import "charm.land/lipgloss/v2"

// ink is the style of a text.
type ink int

const (
	plain ink = iota
	dim
	strong
	good
	warn
	bad
	alarm
	hues // the first of the colors of the members
)

// The terminal's user chooses how the sixteen colors look, so they can be read on a light and on a
// dark background.
var styles = map[ink]lipgloss.Style{
	dim:    lipgloss.NewStyle().Faint(true),
	strong: lipgloss.NewStyle().Bold(true),
	good:   lipgloss.NewStyle().Foreground(lipgloss.Green),
	warn:   lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	bad:    lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
	alarm:  lipgloss.NewStyle().Foreground(lipgloss.BrightWhite).Background(lipgloss.Red).Bold(true),

	hues + 0: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	hues + 1: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	hues + 2: lipgloss.NewStyle().Foreground(lipgloss.Magenta),
	hues + 3: lipgloss.NewStyle().Foreground(lipgloss.Green),
	hues + 4: lipgloss.NewStyle().Foreground(lipgloss.Blue),
}

// memberHues is the number of colors for members. Red is kept for failures.
const memberHues = 5

func (one *member) hue() ink { return hues + ink(one.index%memberHues) }

// palette is true if there are colors.
type palette bool

func (p palette) with(i ink, text string) string {
	style, ok := styles[i]
	if !bool(p) || !ok || text == "" {
		return text
	}
	return style.Render(text)
}
