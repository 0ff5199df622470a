package demo

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// keptLines keeps lines that are printed again after the live view has ended.
type keptLines struct {
	*human
	text  *bytes.Buffer
	lines int
}

// maxKept is the maximum number of lines.
const maxKept = 100

func newKeptLines(o Options, terms ordinals) keptLines {
	text := &bytes.Buffer{}
	o.Out = text
	h := newHuman(o)
	h.terms = terms
	return keptLines{human: h, text: text}
}

// room counts one more line, and reports whether it may be kept.
func (k *keptLines) room() bool {
	k.lines++
	return k.lines <= maxKept
}

func (k *keptLines) overlap(at time.Time, o witness.Overlap) {
	if k.room() {
		k.human.overlap(at, o)
	}
}

func (k *keptLines) show(e entry) {
	if k.room() {
		k.human.show(e, nil)
	}
}

func (k *keptLines) print(out io.Writer) {
	fmt.Fprint(out, k.text)
	if more := k.lines - maxKept; more > 0 {
		fmt.Fprintf(out, "and %s more\n", count(more, "such line"))
	}
}
