package watch

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/internal/story"
	"github.com/tenure-go/tenure/internal/units"
)

// textLines writes text, one line for each change.
type textLines struct {
	out io.Writer
	// trouble and alarms are printed ever less often: a store that is down fails at every attempt.
	trouble loglimit.Limiter
	begun   time.Time // the time of the first
	name    string
}

// newTextLines prints which election is watched.
func newTextLines(o Options) *textLines {
	fmt.Fprintln(o.Out, output.Plain(fmt.Sprintf("Election %q in %v. Ctrl-C ends.", o.Election, o.Place)))
	return &textLines{out: o.Out, name: o.Election}
}

func (l *textLines) tell(i item) {
	f := i.Fact
	switch f.What {
	case story.Named:
		l.line(f.At, "%s in term %d is %s", f.Who, f.Term, f.Text)
	case story.Elected:
		l.line(i.Seen(), "%s leads in term %d%s", f.Who, f.Term, l.circumstances(i))
	case story.Nobody:
		l.line(f.At, "nobody leads: %s", f.Text)
	case story.Asked:
		l.line(f.At, "%s is asked %s", f.Who, f.Text)
	case story.Trouble, story.Alarm:
		l.worry(f)
	case connection:
		l.line(f.At, "%s: %s", f.What, f.Text)
	}
}

// worry prints trouble or an alarm. Repeated causes are printed ever less often, with a count.
func (l *textLines) worry(f story.Fact) {
	if l.begun.IsZero() {
		l.begun = f.At
	}
	cause := string(f.What) + " " + loglimit.Cause(f.Text, l.name)
	switch times := l.trouble.Admit(cause, f.At.Sub(l.begun)); {
	case times == 1:
		l.line(f.At, "%s: %s", f.What, f.Text)
	case times > 1:
		l.line(f.At, "%s, %d times: %s", f.What, times, f.Text)
	}
}

func (l *textLines) line(at time.Time, format string, args ...any) {
	fmt.Fprintf(l.out, "%s  %s\n", clockTime(at), output.Plain(fmt.Sprintf(format, args...)))
}

func clockTime(at time.Time) string { return at.Local().Format("15:04:05.000") }

// circumstances returns since when the leader leads if that is not the time of the line, its
// address, and how long the failover took.
func (l *textLines) circumstances(i item) string {
	f, text := i.Fact, ""
	if f.AtLeast {
		text = ", since at least " + clockTime(f.At)
	}
	if f.Address != "" {
		text += ", at " + f.Address
	}
	if after := i.After("last renewed"); after != "" {
		text += ", " + atLeast(f.TookAtLeast, f.Took) + " " + after
	}
	if f.Text == story.Silence {
		text += measures(&f)
	}
	return text
}

// atLeast formats a time, which may be only the least that it can have been.
func atLeast(only bool, d time.Duration) string {
	if only {
		return "at least " + units.Seconds(d)
	}
	return units.Seconds(d)
}

// measures returns what else is known of a failover after a silence.
func measures(f *story.Fact) string {
	var all []string
	if f.TookByClock > 0 {
		all = append(all, "by its clock "+units.Seconds(f.TookByClock))
	}
	if f.Least >= 0 {
		all = append(all, "minimum "+units.Seconds(f.Least))
	}
	if f.Downtime > 0 {
		all = append(all, "no lease for "+atLeast(f.TookAtLeast, f.Downtime))
	}
	if len(all) == 0 {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// jsonLines writes JSON objects: the library's events unchanged, and others that begin with the
// same fields. A leader that was found has an object of its own.
type jsonLines struct {
	out     io.Writer
	options Options
}

func (o *jsonLines) tell(i item) {
	switch f := i.Fact; {
	case f.What == story.Named:
		o.named(i)
	case f.What == story.Elected && f.AtLeast:
		o.found(i)
	case i.Event != nil:
		output.JSON(o.out, i.Event)
	}
	switch f := i.Fact; {
	case f.What == story.Elected && f.Text != "":
		o.failover(i)
	case f.What == story.Asked:
		o.asked(i)
	case f.What == connection:
		o.connection(i)
	}
}

func (o *jsonLines) head(at time.Time, event string, term uint64) output.Head {
	return output.Head{Time: at.UTC(), Event: event, Election: o.options.Election, ID: o.options.Config.ID, Term: term}
}

// named is a record that names a leader that was not seen to renew.
func (o *jsonLines) named(i item) {
	var written *time.Time
	if !i.Written.IsZero() {
		at := i.Written.UTC()
		written = &at
	}
	output.JSON(o.out, struct {
		output.Head
		Leader      string     `json:"leader"`
		Address     string     `json:"address,omitempty"`
		Written     *time.Time `json:"written,omitempty"`
		LeaseMillis int64      `json:"leaseMillis"`
	}{o.head(i.At, "named", i.Term), i.Who, i.Address, written, i.Lease.Milliseconds()})
}

// found is the event of a leader that led before it was first seen.
func (o *jsonLines) found(i item) {
	output.JSON(o.out, struct {
		output.Head
		Leader  string    `json:"leader"`
		Address string    `json:"address,omitempty"`
		Since   time.Time `json:"since"`
		AtLeast bool      `json:"atLeast"`
		Missed  int       `json:"missed,omitempty"`
	}{o.head(i.Seen(), string(tenure.EventLeader), i.Term), i.Who, i.Address, i.At.UTC(), true, i.Event.Missed})
}

// failover comes after the event of the new leader.
func (o *jsonLines) failover(i item) {
	line := struct {
		output.Head
		Leader         string   `json:"leader"`
		From           string   `json:"from"`
		Kind           string   `json:"kind"`
		Millis         float64  `json:"millis"`
		AtLeast        bool     `json:"atLeast,omitempty"`
		ByClockMillis  float64  `json:"byClockMillis,omitempty"`
		LeastMillis    *float64 `json:"leastMillis,omitempty"`
		DowntimeMillis float64  `json:"downtimeMillis,omitempty"`
	}{
		o.head(i.At, "failover", i.Term), i.Who, i.Before.ID, i.Text, units.Millis(i.Took), i.TookAtLeast,
		units.Millis(i.TookByClock), nil, units.Millis(i.Downtime),
	}
	if i.Least >= 0 {
		least := units.Millis(i.Least)
		line.LeastMillis = &least
	}
	output.JSON(o.out, line)
}

func (o *jsonLines) asked(i item) {
	output.JSON(o.out, struct {
		output.Head
		Leader string `json:"leader"`
		To     string `json:"to"`
		By     string `json:"by"`
	}{o.head(i.At, "asked", i.Term), i.Who, i.Request.To, i.Request.By})
}

func (o *jsonLines) connection(i item) {
	cause := ""
	if i.cause != nil {
		cause = i.cause.Error()
	}
	output.JSON(o.out, struct {
		output.Head
		Up    bool   `json:"up"`
		Cause string `json:"cause,omitempty"`
	}{o.head(i.At, "store", 0), i.up, cause})
}
