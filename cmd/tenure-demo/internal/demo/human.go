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

// human writes lines of text: time, candidate, event, term, and reason.
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

// digits returns the width of terms. If terms begin at the time of a server's clock, they have as
// many digits: microseconds on NATS and databases, milliseconds on object storage.
func digits(o Options) int {
	switch place := o.kindOfPlace(); {
	case place.NATS != nil, place.SQL != nil:
		return len("#99 1795270861001002")
	case place.S3 != nil:
		return len("#99 1795270861001")
	}
	return len("#99 9999")
}

// ordinals number terms in the order in which they are first printed, since tokens have many digits
// and gaps.
type ordinals map[uint64]int

// name returns the number and the token of a term, or an empty text for 0, which is no term.
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

// introduce prints a few lines about the demo, with commands to try.
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
		fmt.Fprintf(h.out, "%s\n", howFollowersLearn(o))
	}
	fmt.Fprintf(h.out, "%s, lease %v, renewed every %v. %s. Ctrl-C ends.\n\n",
		count(o.Candidates, "candidate"), o.Lease, o.Renew.Round(time.Millisecond), plan(o))
}

// howFollowersLearn says how followers learn of renewals and releases that the store does not push.
func howFollowersLearn(o Options) string {
	if o.Peers != nil {
		return "This store does not push. The leader reports to its followers directly, over " + o.Peers.Scheme() + "."
	}
	return fmt.Sprintf("This store does not push. Followers poll it, so a failover takes up to %v longer than it must; "+
		"with --peer\nthe leader reports to them directly.", o.slack())
}

func plan(o Options) string {
	switch {
	case o.CrashEvery == 0:
		return "The leader is not disturbed"
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
	case !h.repetitive(e.event):
		h.line(styles[e.event.Kind], clock(e.event.Time), e.event.ID, string(e.event.Kind), h.terms.name(e.event.Term), h.why(e.event, f))
	}
}

// repetitive reports whether to leave an event out: all followers see the same leader and the same
// reason to wait, and each attempt fails while a store is down.
func (h *human) repetitive(e *event) bool {
	switch e.Kind {
	case tenure.EventLeader, tenure.EventWaiting:
		return !h.verbose
	case tenure.EventTrouble:
		last, before := h.quiet[e.ID]
		h.quiet[e.ID] = e.Time
		return before && e.Time.Sub(last) < max(2*h.lease, 5*time.Second)
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

// wrapping matches the text of AWS's client library around the cause.
var wrapping = regexp.MustCompile(`operation error S3: \w+, (https response error StatusCode: \d+, RequestID: [^,]*, HostID: [^,]*, )?` +
	`(request send failed, )?`)

// brief leaves out the prefixes that every line would have.
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

// failoverStarts describes, for each kind of failover, the event from which it is counted.
var failoverStarts = map[kind]string{
	kindCrash: "died", kindPause: "was frozen", kindGraceful: "was asked to leave",
	kindForced: "lost its record", kindOther: "was last seen to lead",
}

// String returns the time that the failover took, with the shortest and the longest possible time.
func (f *failover) String() string {
	text := fmt.Sprintf("%s after %s %s", units.Seconds(f.took), f.from, failoverStarts[f.kind])
	if !f.known {
		return text
	}
	text += " (minimum " + units.Seconds(f.least)
	if f.most > 0 {
		text += ", maximum " + units.Seconds(f.most)
	}
	return text + ")"
}
