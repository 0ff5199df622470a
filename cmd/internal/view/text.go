package view

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// width returns the number of columns of a text, without its colors.
func width(text string) int { return lipgloss.Width(text) }

// fit cuts a text to so many columns.
func fit(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return ansi.Truncate(text, columns, "…")
}

// pad cuts a text to so many columns, or fills it up with blanks.
func pad(text string, columns int) string {
	text = fit(text, columns)
	return text + blanks(columns-width(text))
}

// padLeft is like pad, with the blanks in front.
func padLeft(text string, columns int) string {
	text = fit(text, columns)
	return blanks(columns-width(text)) + text
}

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// ends puts one text at the left and one at the right end of a line. The left one is cut first.
func ends(left, right string, columns int) string {
	room := columns - width(right)
	if right == "" || room < columns/3 {
		return fit(left, columns)
	}
	return pad(left, room-2) + blanks(2) + right
}

// age formats a time that has passed or is left. It has few digits, since it changes while it is
// read.
func age(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return round(d.Truncate(time.Second))
	}
	return round(d.Truncate(time.Minute))
}

// brief formats the duration of a setting, such as "2 s" or "1m30s".
func brief(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return round(d)
}

// round leaves out zeros: "1m" for "1m0s", "2h" for "2h0m0s".
func round(d time.Duration) string {
	text := d.String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, nothing) {
			text = text[:len(text)-2]
		}
	}
	return text
}

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
