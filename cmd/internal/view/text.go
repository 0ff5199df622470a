package view

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// width is how many columns a text takes, colours aside.
func width(text string) int { return lipgloss.Width(text) }

// fit cuts a text to so many columns.
func fit(text string, columns int) string {
	if columns <= 0 {
		return ""
	}
	return ansi.Truncate(text, columns, "…")
}

// pad fits a text, and fills it up.
func pad(text string, columns int) string {
	text = fit(text, columns)
	return text + blanks(columns-width(text))
}

// padLeft is pad with the text at the end.
func padLeft(text string, columns int) string {
	text = fit(text, columns)
	return blanks(columns-width(text)) + text
}

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// ends puts a text at each end of a line. The left one is cut first.
func ends(left, right string, columns int) string {
	room := columns - width(right)
	if right == "" || room < columns/3 {
		return fit(left, columns)
	}
	return pad(left, room-2) + blanks(2) + right
}

// age is a time that has passed, or that is left, in as few figures as one can read while it runs.
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

// brief is a setting, such as "2 s" or "1m30s".
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
