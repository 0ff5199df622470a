package demo

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/tenure-go/tenure/internal/witness"
)

// keeper keeps the lines that must not vanish with the picture.
type keeper struct {
	*human
	text  *bytes.Buffer
	lines int
}

// maxKept is how many lines are kept.
const maxKept = 100

func newKeeper(o Options, terms ordinals) keeper {
	text := &bytes.Buffer{}
	o.Out = text
	h := newHuman(o)
	h.terms = terms
	return keeper{human: h, text: text}
}

// room reports whether there is some for one more line.
func (k *keeper) room() bool {
	k.lines++
	return k.lines <= maxKept
}

func (k *keeper) overlap(at time.Time, o witness.Overlap) {
	if k.room() {
		k.human.overlap(at, o)
	}
}

func (k *keeper) show(e entry) {
	if k.room() {
		k.human.show(e, nil)
	}
}

func (k *keeper) print(out io.Writer) {
	fmt.Fprint(out, k.text)
	if more := k.lines - maxKept; more > 0 {
		fmt.Fprintf(out, "and %s more\n", count(more, "such line"))
	}
}
