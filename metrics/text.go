package metrics

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// TextType is the Content-Type of WriteText.
const TextType = "text/plain; version=0.0.4; charset=utf-8"

// WriteText writes all samples in the text format of Prometheus, version 0.0.4. Use it to serve
// metrics without a library; a program that has client_golang uses package metrics/tenureprom. The
// error is that of the Writer.
func (s *Set) WriteText(to io.Writer) error {
	w := textWriter{Writer: bufio.NewWriter(to)}
	s.Gather(w.sample)
	return w.Flush()
}

// textWriter writes samples. Its errors show in Flush.
type textWriter struct {
	*bufio.Writer
	last *Definition
}

// escaped are the characters that have a meaning in the value of a label.
var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

var kindNames = [...]string{Gauge: "gauge", Counter: "counter", Histogram: "histogram"}

func (w *textWriter) sample(s Sample) {
	if w.last != s.Definition {
		w.last = s.Definition
		w.all("# HELP ", s.Name, " ", s.Help, "\n# TYPE ", s.Name, " ", kindNames[s.Kind], "\n")
	}
	if s.Kind != Histogram {
		w.line(&s, "", "", s.Number)
		return
	}
	var n uint64
	for i, count := range s.Distribution.Counts {
		n += count
		le := "+Inf"
		if i < len(s.Bounds) {
			le = number(s.Bounds[i])
		}
		w.line(&s, "_bucket", le, float64(n))
	}
	w.line(&s, "_sum", "", s.Distribution.Sum)
	w.line(&s, "_count", "", float64(n))
}

// line writes one value. A bucket has its bound in the label le.
func (w *textWriter) line(s *Sample, suffix, le string, value float64) {
	w.all(s.Name, suffix)
	separator := "{"
	for _, l := range [...][2]string{{s.Key, s.Election}, {s.Label, s.Value}, {s.Label2, s.Value2}, {"le", le}} {
		if l[0] == "" || l[0] == "le" && le == "" {
			continue
		}
		w.all(separator, l[0], `="`, escaped.Replace(l[1]), `"`)
		separator = ","
	}
	if separator == "," {
		w.all("}")
	}
	w.all(" ", number(value), "\n")
}

func (w *textWriter) all(parts ...string) {
	for _, p := range parts {
		_, _ = w.WriteString(p)
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
