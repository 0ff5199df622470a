package demo

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
)

// human writes lines for people: time, candidate, what happened, term, and why.
type human struct {
	out     io.Writer
	paint   palette
	lease   time.Duration
	verbose bool
	width   int // of the candidates' names
	quiet   map[string]time.Time
}

func newHuman(o Options) *human {
	return &human{
		out: o.Out, paint: palette(o.Colour), lease: o.Lease, verbose: o.Verbose,
		width: len(fmt.Sprintf("c%d", o.Candidates)), quiet: map[string]time.Time{},
	}
}

// begin says in a few lines what is going on and what to try.
func (h *human) begin(_ time.Time, o Options) {
	fmt.Fprintf(h.out, "Election %q in %v\n", o.Election, o.Place)
	for _, try := range [][2]string{{"look in", "get"}, {"force a failover", "del"}} {
		fmt.Fprintf(h.out, "  %-17s %s kv %s %s %s\n", try[0]+":", o.Place.NATS(), try[1], o.Place.Bucket, o.Election)
	}
	fmt.Fprintf(h.out, "%s, lease %v, renewed every %v. %s. Ctrl-C ends.\n\n",
		count(o.Candidates, "candidate"), o.Lease, o.Renew.Round(time.Millisecond), plan(o))
	h.line(dim, "time", "who", "what", "term", "")
}

func plan(o Options) string {
	switch {
	case o.CrashEvery == 0:
		return "The leader is left in peace"
	case canPause:
		return fmt.Sprintf("Every %v the leader is killed, frozen or asked to end, in turn", o.CrashEvery)
	}
	return fmt.Sprintf("Every %v the leader is killed or asked to end, in turn", o.CrashEvery)
}

func (h *human) line(s style, at, who, what, term, text string) {
	row := fmt.Sprintf("%s  %-*s  %s %4s  %s", h.paint.with(dim, fmt.Sprintf("%-12s", at)),
		max(h.width, len("who")), who, h.paint.with(s, fmt.Sprintf("%-9s", what)), term, text)
	fmt.Fprintln(h.out, strings.TrimRight(row, " "))
}

func (h *human) show(e entry, f *failover) {
	switch {
	case e.deed != nil:
		h.deed(e.deed)
	case !h.dull(e.event):
		h.line(styles[e.event.Kind], clock(e.event.Time), e.event.ID, string(e.event.Kind), number(e.event.Term), h.why(e.event, f))
	}
}

// dull events are left out: what each follower sees is the same, and a store that is down is so at every attempt.
func (h *human) dull(e *event) bool {
	switch e.Kind {
	case tenure.EventLeader:
		return !h.verbose
	case tenure.EventTrouble:
		last, told := h.quiet[e.ID]
		h.quiet[e.ID] = e.Time
		return told && e.Time.Sub(last) < max(2*h.lease, 5*time.Second)
	}
	return false
}

func (h *human) why(e *event, f *failover) string {
	switch {
	case f != nil:
		return f.String()
	case e.Kind == tenure.EventLeader && e.Leader == "":
		return "sees nobody lead"
	case e.Kind == tenure.EventLeader:
		return "sees " + e.Leader + " lead"
	case e.Missed > 0:
		return fmt.Sprintf("%s (%d earlier events were dropped)", brief(e.Cause), e.Missed)
	}
	return brief(e.Cause)
}

// brief leaves out what every line would begin with.
func brief(cause string) string {
	cause = strings.TrimPrefix(cause, "tenure: ")
	if rest, ok := strings.CutPrefix(cause, "election "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return after
		}
	}
	return cause
}

func (h *human) overlap(at time.Time, o overlap) {
	text := fmt.Sprintf("OVERLAP, two leaders at once: %v", o)
	fmt.Fprintf(h.out, "%s  %s\n", clock(at), h.paint.with(alarm, "!!! "+text+" !!!"))
}

func clock(t time.Time) string { return t.Local().Format("15:04:05.000") }

// number leaves out a term that there is none of.
func number(term uint64) string {
	if term == 0 {
		return ""
	}
	return fmt.Sprint(term)
}

// befell is what a failover was counted from.
var befell = map[kind]string{
	kindCrash: "died", kindPause: "was frozen", kindGraceful: "was asked to leave",
	kindForced: "lost its record", kindOther: "was last seen to lead",
}

// String is the time that it took beside the time that it had to take.
func (f *failover) String() string {
	text := fmt.Sprintf("%s after %s %s", seconds(f.took), f.from, befell[f.kind])
	if !f.known {
		return text
	}
	return fmt.Sprintf("%s; the least is %s", text, seconds(f.least))
}

// seconds keeps milliseconds, and below a tenth of a second a bit more.
func seconds(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", millis(d))
	}
	return fmt.Sprintf("%.3f s", d.Seconds())
}
