package watch

import (
	"fmt"
	"io"
	"time"

	"github.com/tenure-go/tenure/cmd/tenure/internal/units"
	"github.com/tenure-go/tenure/cmd/tenure/internal/view"
)

// lines are for people, one for each change.
type lines struct {
	out io.Writer
	// quiet is until when further trouble is not told of: a store that is down is so at every attempt.
	quiet time.Time
}

// newLines says what is watched.
func newLines(o Options) *lines {
	fmt.Fprintln(o.Out, units.Plain(fmt.Sprintf("Election %q in %v. Ctrl-C ends.", o.Election, o.Place)))
	return &lines{out: o.Out}
}

// often is how often trouble is told of.
const often = 5 * time.Second

func (l *lines) tell(i item) {
	f := i.fact
	switch f.What {
	case view.Elected:
		l.line(f.At, "%s leads in term %d%s", f.Who, f.Term, l.circumstances(i))
	case view.Nobody:
		l.line(f.At, "nobody leads: %s", f.Text)
	case view.Asked:
		l.line(f.At, "%s is asked %s", f.Who, f.Text)
	case view.Trouble:
		if f.At.Before(l.quiet) {
			return
		}
		l.quiet = f.At.Add(often)
		l.line(f.At, "trouble: %s", f.Text)
	case view.Alarm, connection:
		l.line(f.At, "%s: %s", f.What, f.Text)
	}
}

func (l *lines) line(at time.Time, format string, args ...any) {
	fmt.Fprintf(l.out, "%s  %s\n", at.Local().Format("15:04:05.000"), units.Plain(fmt.Sprintf(format, args...)))
}

// circumstances are where a leader is, and what it took to get there.
func (l *lines) circumstances(i item) string {
	f, text := i.fact, ""
	if f.Address != "" {
		text = ", at " + f.Address
	}
	took := units.Seconds(f.Took)
	switch f.Text {
	case graceful:
		text += fmt.Sprintf(", %s after %s released the lease", took, i.before.ID)
	case forced:
		text += fmt.Sprintf(", %s after the record of %s was deleted", took, i.before.ID)
	case silence:
		text += fmt.Sprintf(", %s after %s last renewed; the least is %s", took, i.before.ID, units.Seconds(f.Least))
	}
	return text
}
