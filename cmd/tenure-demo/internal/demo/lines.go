package demo

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/output"
	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/units"
	"github.com/tenure-go/tenure/internal/witness"
)

// printer reports the entries, as text or as JSON.
type printer interface {
	begin(at time.Time, o Options)
	// show reports one entry, and the failover that it completes, if any.
	show(e entry, f *failover)
	// see is called for a sight of the record, for which there is no line, with the number of
	// checked acts.
	see(e entry, acts int)
	overlap(at time.Time, o witness.Overlap)
	// leave restores the terminal, and is the last call before end. It returns an error if the view
	// failed. It may be called again.
	leave() error
	end(at time.Time, s summary)
}

// lineByLine holds the methods that printers without a terminal share.
type lineByLine struct{}

func (lineByLine) see(entry, int) {}
func (lineByLine) leave() error   { return nil }

// summary is the result of a demo.
type summary struct {
	lasted      time.Duration
	elections   int
	first, last uint64 // terms
	rows        []row
	failovers   int
	acts        int
	overlaps    int
}

// style is the style of a text, as the parameters of the terminal's escape sequence.
type style string

const (
	plain  style = ""
	dim    style = "2"
	good   style = "1;32"
	bad    style = "31"
	alarm  style = "1;97;41"
	action style = "1;36"
	waning style = "33"
	store  style = "35"
)

// palette is true if there are colors.
type palette bool

func (p palette) with(s style, text string) string {
	if !p || s == plain {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

var styles = map[tenure.EventKind]style{
	tenure.EventCandidate: dim, tenure.EventLeader: dim, tenure.EventWaiting: dim,
	tenure.EventElected: good,
	tenure.EventLeaving: waning, tenure.EventReleased: waning,
	tenure.EventLost: bad, tenure.EventFailed: bad,
	tenure.EventTrouble: store,
	tenure.EventOverdue: alarm, tenure.EventAlarm: alarm,
}

var deedStyles = map[do]style{
	doStart: dim, doKill: action, doPause: action, doResume: action, doStop: action,
	doDied: bad, doOutput: bad, doStore: store, doPeer: store, doAdvise: waning, doUnseen: waning,
}

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

// digits returns the width of terms.
func digits(o Options) int { return len("#99 ") + o.kindOfPlace().Description().TokenDigits }

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
	case crew.CanFreeze:
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

// deed prints an action of the demo, in capitals if it is on the leader.
func (h *human) deed(d *deed) {
	who := d.id
	if who == "" {
		who = "-"
	}
	what := string(d.do)
	switch d.do {
	case doKill, doPause, doResume, doStop:
		what = strings.ToUpper(what)
	}
	h.line(deedStyles[d.do], clock(d.time), who, what, h.terms.name(d.term), d.tell(h.lease))
}

func (d *deed) tell(lease time.Duration) string {
	switch d.do {
	case doStart:
		return fmt.Sprintf("process %d", d.pid)
	case doKill:
		return "the demo kills the leader (SIGKILL)"
	case doPause:
		return fmt.Sprintf("the demo freezes the leader for two leases, %v (SIGSTOP)", 2*lease)
	case doResume:
		return "the demo wakes it (SIGCONT)"
	case doStop:
		return "the demo asks the leader to end (SIGTERM)"
	case doDied:
		return fmt.Sprintf("process %d ended: %s", d.pid, d.text)
	case doPeer:
		return "cannot follow the leader directly: " + brief(d.text)
	case doUnseen:
		return "renewals cannot be seen, so minimum times are unknown: " + d.text
	}
	return d.text
}

// end prints a table of the times of failovers, and the number of overlaps.
func (h *human) end(_ time.Time, s summary) {
	fmt.Fprintf(h.out, "\nAfter %v: %s, %s, %s.\n",
		s.lasted.Round(100*time.Millisecond), count(s.elections, "election"), s.terms(), count(s.failovers, "failover"))
	if s.failovers > 0 {
		h.table(s.rows)
		fmt.Fprintf(h.out, "%s\n", h.paint.with(dim, s.footnote()))
	}
	verdict, how := fmt.Sprintf("overlaps found: %d", s.overlaps), good
	if s.overlaps > 0 {
		how = alarm
	}
	fmt.Fprintf(h.out, "Acts checked: %d; %s\n", s.acts, h.paint.with(how, verdict))
}

func (s summary) footnote() string {
	if bounded(s.rows) {
		return footnote + "\n" + footnoteMost
	}
	return footnote
}

const footnoteMost = "most: least plus the longest time between two reads of a candidate that polls; the store's own time to answer is not included"

const footnote = "least: after a crash or pause until the lease ends, counted from the last renewal that the store saw; " +
	"after a release 0"

func (s summary) terms() string {
	switch s.elections {
	case 0:
		return "no term"
	case 1:
		return fmt.Sprintf("term #1 (%d)", s.first)
	}
	return fmt.Sprintf("terms #1 to #%d (%d to %d)", s.elections, s.first, s.last)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (h *human) table(rows []row) {
	var text strings.Builder
	t := tabwriter.NewWriter(&text, 0, 0, 3, ' ', tabwriter.AlignRight)
	bounded := bounded(rows)
	head := "  failover\tn\tmedian\tmax\tleast: median\tmax\t"
	if bounded {
		head += "most: median\tmax\t"
	}
	fmt.Fprintln(t, head)
	for _, r := range rows {
		fmt.Fprintf(t, "  %s\t%d\t", r.kind, r.n)
		cells := r.cells()
		if !bounded {
			cells = cells[:4]
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	_ = t.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(h.out, strings.TrimRight(line, " \n"))
	}
}

// bounded reports whether there is an upper bound for some failovers, as with a polled store.
func bounded(rows []row) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return r.most.known })
}

// cells returns the median and the maximum of the times that failovers took, of the least possible
// times, and of the longest possible times.
func (r row) cells() []string {
	var c []string
	for _, s := range []stat{r.took, r.least, r.most} {
		if s.known {
			c = append(c, units.Seconds(s.median), units.Seconds(s.max))
		} else {
			c = append(c, "", "")
		}
	}
	if r.n > 0 && !r.least.known {
		c[2] = "unknown"
	}
	return c
}

// jsonLines writes one object per line: the library's events unchanged, and the demo's own objects,
// which begin with the same fields.
type jsonLines struct {
	lineByLine
	out      io.Writer
	election string
}

func (j *jsonLines) head(at time.Time, event, id string, term uint64) output.Head {
	return output.Head{Time: at.UTC(), Event: event, Election: j.election, ID: id, Term: term}
}

func (j *jsonLines) line(v any) { output.JSON(j.out, v) }

func (j *jsonLines) begin(at time.Time, o Options) {
	j.line(struct {
		output.Head
		Do               string `json:"do"`
		Store            string `json:"store"`
		Candidates       int    `json:"candidates"`
		LeaseMillis      int64  `json:"leaseMillis"`
		RenewMillis      int64  `json:"renewMillis"`
		CrashEveryMillis int64  `json:"crashEveryMillis"`
	}{
		j.head(at, "demo", "", 0), "begin", o.Place.String(), o.Candidates,
		o.Lease.Milliseconds(), o.Renew.Milliseconds(), o.CrashEvery.Milliseconds(),
	})
}

func (j *jsonLines) show(e entry, f *failover) {
	if e.deed != nil {
		j.deed(e.deed)
		return
	}
	j.line(e.event.raw)
	if f != nil {
		j.failover(e.event, f)
	}
}

func (j *jsonLines) deed(d *deed) {
	j.line(struct {
		output.Head
		Do      do     `json:"do"`
		Process int    `json:"process,omitempty"`
		Text    string `json:"text,omitempty"`
	}{j.head(d.time, "demo", d.id, d.term), d.do, d.pid, d.text})
}

func (j *jsonLines) failover(e *event, f *failover) {
	j.line(struct {
		output.Head
		Do          string   `json:"do"`
		Kind        kind     `json:"kind"`
		From        string   `json:"from"`
		Millis      float64  `json:"millis"`
		LeastMillis *float64 `json:"leastMillis,omitempty"`
		MostMillis  *float64 `json:"mostMillis,omitempty"`
	}{
		j.head(e.Time, "demo", e.ID, e.Term), "failover", f.kind, f.from, units.Millis(f.took), optional(f.least, f.known),
		optional(f.most, f.most > 0),
	})
}

func (j *jsonLines) overlap(at time.Time, o witness.Overlap) {
	j.line(struct {
		output.Head
		Do        string `json:"do"`
		OlderID   string `json:"olderID"`
		OlderTerm uint64 `json:"olderTerm"`
		Text      string `json:"text"`
	}{j.head(at, "demo", idOf(o.Newer), o.Newer.Token), "overlap", idOf(o.Older), o.Older.Token, o.String()})
}

// kindJSON is one kind of failover in the summary.
type kindJSON struct {
	Kind              kind     `json:"kind"`
	N                 int      `json:"n"`
	MedianMillis      *float64 `json:"medianMillis,omitempty"`
	MaxMillis         *float64 `json:"maxMillis,omitempty"`
	LeastMedianMillis *float64 `json:"leastMedianMillis,omitempty"`
	LeastMaxMillis    *float64 `json:"leastMaxMillis,omitempty"`
	MostMedianMillis  *float64 `json:"mostMedianMillis,omitempty"`
	MostMaxMillis     *float64 `json:"mostMaxMillis,omitempty"`
}

func (j *jsonLines) end(at time.Time, s summary) {
	var ks []kindJSON
	for _, r := range s.rows {
		ks = append(ks, kindJSON{
			r.kind, r.n, optional(r.took.median, r.took.known), optional(r.took.max, r.took.known),
			optional(r.least.median, r.least.known), optional(r.least.max, r.least.known),
			optional(r.most.median, r.most.known), optional(r.most.max, r.most.known),
		})
	}
	j.line(struct {
		output.Head
		Seconds   float64    `json:"seconds"`
		Elections int        `json:"elections"`
		Failovers []kindJSON `json:"failovers"`
		Acts      int        `json:"acts"`
		Overlaps  int        `json:"overlaps"`
	}{
		j.head(at, "summary", "", s.last), s.lasted.Round(time.Millisecond).Seconds(),
		s.elections, ks, s.acts, s.overlaps,
	})
}

func optional(d time.Duration, known bool) *float64 {
	if !known {
		return nil
	}
	ms := units.Millis(d)
	return &ms
}
