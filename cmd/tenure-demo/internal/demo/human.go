package demo

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/units"
	"github.com/tenure-go/tenure/internal/witness"
)

// human writes lines for people: time, candidate, event, term, and reason.
type human struct {
	lineByLine
	out     io.Writer
	paint   palette
	lease   time.Duration
	verbose bool
	width   int // of the candidates' names
	digits  int // of terms
	terms   ordinals
	quiet   map[string]time.Time
}

func newHuman(o Options) *human {
	return &human{
		out: o.Out, paint: palette(o.Colour), lease: o.Lease, verbose: o.Verbose,
		width: len(fmt.Sprintf("c%d", o.Candidates)), digits: digits(o), terms: ordinals{}, quiet: map[string]time.Time{},
	}
}

// digits: where a clock of the server is the floor of terms, they are as long as that, on NATS in
// microseconds and on object storage in milliseconds.
func digits(o Options) int {
	switch place := o.kindOfPlace(); {
	case place.NATS != nil:
		return len("#99 1795270861001002")
	case place.S3 != nil:
		return len("#99 1795270861001")
	}
	return len("#99 9999")
}

// ordinals number terms in the order in which they are first told, since tokens have many digits
// and gaps between them.
type ordinals map[uint64]int

// name has the token beside the number. A term that there is none of has none.
func (o ordinals) name(token uint64) string {
	if token == 0 {
		return ""
	}
	if o[token] == 0 {
		o[token] = len(o) + 1
	}
	return fmt.Sprintf("#%d %d", o[token], token)
}

func (h *human) begin(_ time.Time, o Options) {
	h.introduce(o)
	h.line(dim, "time", "who", "what", "term", "")
}

// introduce explains the demo in a few lines, and what to try.
func (h *human) introduce(o Options) {
	say := func(format string, args ...any) { fmt.Fprintln(h.out, output.Plain(fmt.Sprintf(format, args...))) }
	say("Election %q in %v", o.Election, o.Place)
	try := o.Place.Commands(o.Election)
	say("  look in:          %s", try.Look)
	if try.Delete != "" {
		say("  force a failover: %s", try.Delete)
	}
	if text := o.Place.Nomination(o.Election); text != "" {
		say("%s", text)
	}
	if o.Polled() {
		fmt.Fprintf(h.out, "%s\n", hearing(o))
	}
	fmt.Fprintf(h.out, "%s, lease %v, renewed every %v. %s. Ctrl-C ends.\n\n",
		count(o.Candidates, "candidate"), o.Lease, o.Renew.Round(time.Millisecond), plan(o))
}

// hearing is how followers learn of renewals and releases from a store that does not push them.
func hearing(o Options) string {
	if o.Peers != nil {
		return "This store does not push. Followers hear from the leader itself, over " + o.Peers.Scheme() + "."
	}
	return fmt.Sprintf("This store does not push. Followers read it now and then, so a failover takes up to %v longer than it must; "+
		"with --peer\nthey hear from the leader itself.", o.slack())
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
	row := fmt.Sprintf("%s  %-*s  %s %-*s  %s", h.paint.with(dim, fmt.Sprintf("%-12s", at)),
		max(h.width, len("who")), output.Plain(who), h.paint.with(s, fmt.Sprintf("%-9s", what)), h.digits, term, output.Plain(text))
	fmt.Fprintln(h.out, strings.TrimRight(row, " "))
}

func (h *human) show(e entry, f *failover) {
	switch {
	case e.deed != nil && e.deed.expected && !h.verbose:
	case e.deed != nil:
		h.deed(e.deed)
	case !h.dull(e.event):
		h.line(styles[e.event.Kind], clock(e.event.Time), e.event.ID, string(e.event.Kind), h.terms.name(e.event.Term), h.why(e.event, f))
	}
}

// dull events are left out: all followers see the same, and a store that is down fails at every
// attempt.
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

// wrapping matches the words of AWS's client library around the cause.
var wrapping = regexp.MustCompile(`operation error S3: \w+, (https response error StatusCode: \d+, RequestID: [^,]*, HostID: [^,]*, )?` +
	`(request send failed, )?`)

// brief leaves out the words that every line would begin with.
func brief(cause string) string {
	cause = strings.TrimPrefix(strings.TrimPrefix(cause, "tenure: "), "peer: ")
	cause = wrapping.ReplaceAllString(cause, "")
	if rest, ok := strings.CutPrefix(cause, "election "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return after
		}
	}
	return cause
}

func (h *human) overlap(at time.Time, o witness.Overlap) {
	text := fmt.Sprintf("OVERLAP, two leaders at once: %v", o)
	fmt.Fprintf(h.out, "%s  %s\n", clock(at), h.paint.with(alarm, "!!! "+text+" !!!"))
}

func clock(t time.Time) string { return t.Local().Format("15:04:05.000") }

// befell names the events from which failovers are counted.
var befell = map[kind]string{
	kindCrash: "died", kindPause: "was frozen", kindGraceful: "was asked to leave",
	kindForced: "lost its record", kindOther: "was last seen to lead",
}

// String is the time that it took beside the time that it had to take.
func (f *failover) String() string {
	text := fmt.Sprintf("%s after %s %s", units.Seconds(f.took), f.from, befell[f.kind])
	if !f.known {
		return text
	}
	text += "; the least is " + units.Seconds(f.least)
	if f.most > 0 {
		text += ", the most " + units.Seconds(f.most)
	}
	return text
}
