package view_test

import (
	"fmt"
	"html"
	"image/color"
	"os"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
)

// The README's picture is a golden frame in colors. It is drawn again whenever the frame changes.
func TestREADMEPicture(t *testing.T) {
	const file = "testdata/steady-80x24.ansi"
	frame, err := os.ReadFile(file)
	must.OK(t, err)
	must.Golden(t, "../../../docs/demo.svg", draw(string(frame), standard))
	readme, err := os.ReadFile("../../../README.md")
	must.OK(t, err)
	if !strings.Contains(string(readme), "](docs/demo.svg)") {
		t.Error("the README does not show it")
	}
}

// Measures of the picture, in pixels. The columns are as wide as those of most monospaced fonts of
// that size.
const (
	fontSize = 14
	across   = 8.43
	down     = 18.0
	margin   = 18.0
	baseline = 13.5
)

// The panel has its own background, so that it is readable on a light page and on a dark one.
const (
	ground = "#161b22"
	edge   = "#3d444d"
	text   = "#d1d7e0"
	quiet  = "#8b949e"
)

// hues are the colors of a terminal, as far as the picture uses them.
var hues = map[color.Color]string{
	ansi.Red: "#ff7b72", ansi.Green: "#7ee787", ansi.Yellow: "#f2cc60", ansi.Blue: "#79a8ff", ansi.Magenta: "#d2a8ff",
	ansi.Cyan: "#56d4dd", ansi.BrightWhite: "#ffffff",
}

// draw turns a frame into SVG.
func draw(frame string, z size) string {
	cells := uv.NewScreenBuffer(z.width, z.height)
	uv.NewStyledString(frame).Draw(cells, cells.Bounds())
	var svg strings.Builder
	w, h := float64(z.width)*across+2*margin, float64(z.height)*down+2*margin
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" shape-rendering="crispEdges" `+
		`font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="%d">`+"\n",
		w, h, w, h, fontSize)
	fmt.Fprintf(&svg, "<title>tenure-demo</title>\n")
	fmt.Fprintf(&svg, `<rect x="0.5" y="0.5" width="%.0f" height="%.0f" rx="9" fill="%s" stroke="%s" shape-rendering="auto"/>`+"\n", w-1, h-1, ground, edge)
	for y := range z.height {
		drawLine(&svg, cells, y, z.width)
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// drawLine draws adjacent cells together if they have one style and the same sign, or belong to one
// word.
func drawLine(svg *strings.Builder, cells uv.ScreenBuffer, y, width int) {
	for x := 0; x < width; {
		first, n := cells.CellAt(x, y), 1
		for x+n < width && joins(first, cells.CellAt(x+n, y)) {
			n++
		}
		run := ""
		for i := range n {
			run += cells.CellAt(x+i, y).Content
		}
		if strings.TrimSpace(run) != "" {
			drawRun(svg, first.Style, run, margin+float64(x)*across, margin+float64(y)*down, n)
		}
		x += n
	}
}

func joins(first, next *uv.Cell) bool {
	if shape(first.Content) != nil || shape(next.Content) != nil {
		return first.Content == next.Content && first.Style.Equal(&next.Style)
	}
	return (first.Content == " ") == (next.Content == " ") && first.Style.Equal(&next.Style)
}

func drawRun(svg *strings.Builder, s uv.Style, run string, x, y float64, n int) {
	fill, ok := hues[s.Fg]
	if !ok {
		fill = text
	}
	more := ""
	if s.Attrs&uv.AttrFaint != 0 {
		fill = quiet
	}
	if s.Attrs&uv.AttrBold != 0 {
		more = ` font-weight="bold"`
	}
	wide := float64(n) * across
	if shape := shape(run[:runeLen(run)]); shape != nil {
		svg.WriteString(shape(x, y, wide, fill))
		return
	}
	fmt.Fprintf(svg, `<text x="%.2f" y="%.2f" textLength="%.2f" fill="%s"%s>%s</text>`+"\n", x, y+baseline, wide, fill, more, html.EscapeString(run))
}

// runeLen returns the length of the first character.
func runeLen(run string) int {
	for i := range run {
		if i > 0 {
			return i
		}
	}
	return len(run)
}

// shape draws a sign that fonts draw differently, so that bars have no gaps. It returns nil for all
// other signs.
func shape(sign string) func(x, y, wide float64, fill string) string {
	box := func(top, tall, part float64, more string) func(x, y, wide float64, fill string) string {
		return func(x, y, wide float64, fill string) string {
			return fmt.Sprintf(`<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"%s/>`+"\n", x, y+top, wide*part, tall, fill, more)
		}
	}
	switch sign {
	case "█":
		return box(2, 14, 1, "")
	case "░":
		return box(2, 14, 1, ` opacity="0.28"`)
	case "─":
		return box(8.5, 1, 1, "")
	case "━":
		return box(7, 4, 1, "")
	case "╍":
		return func(x, y, wide float64, fill string) string {
			return fmt.Sprintf(`<path d="M%.2f %.2fh%.2f" stroke="%s" stroke-width="3" stroke-dasharray="2.8 1.415" stroke-dashoffset="-0.7"/>`+"\n", x, y+9, wide, fill)
		}
	}
	for i, eighth := range []string{"▏", "▎", "▍", "▌", "▋", "▊", "▉"} {
		if sign == eighth {
			return box(2, 14, float64(i+1)/8, "")
		}
	}
	return nil
}
