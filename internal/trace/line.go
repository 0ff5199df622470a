// Package trace records the inputs and the decisions of protocol machines as lines of JSON, and
// reads them. docs/trace.md describes the lines for people. Recording changes no decision.
package trace

import (
	"errors"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// Format is the version of the format. A Start line states it.
const Format = 1

// Line is one call of a machine: an input, or Next, which returns the decisions. Fields that a kind
// of line does not have are left out. Durations are in nanoseconds.
type Line struct {
	// In names the call.
	In string `json:"in"`
	// By is the incarnation of the machine: several may write one file.
	By string `json:"by"`
	// At are the readings of the clocks (Mono, Raw and Boot of clock.Instant), and Wall the time of
	// day, which decides nothing.
	At   [3]time.Duration `json:"at,omitzero"`
	Wall time.Time        `json:"wall,omitzero"`

	Format   int       `json:"format,omitempty"`
	Election string    `json:"election,omitempty"`
	Settings *Settings `json:"settings,omitempty"`

	Op      uint64         `json:"op,omitempty"` // the operation that is answered
	Outcome string         `json:"outcome,omitempty"`
	Version driver.Version `json:"version,omitempty"` // that a write got
	Cell    *Cell          `json:"cell,omitempty"`
	Error   string         `json:"error,omitempty"`

	Term  uint64        `json:"term,omitempty"`
	Left  time.Duration `json:"left,omitempty"` // the answer to a question: how long it may act
	On    bool          `json:"on,omitempty"`
	Again bool          `json:"again,omitempty"`
	To    string        `json:"to,omitempty"`
	From  string        `json:"from,omitempty"`
	Delay time.Duration `json:"delay,omitempty"`
	// Rand are the random numbers that the machine drew in this call.
	Rand []uint64 `json:"rand,omitempty"`

	Send    *Op            `json:"send,omitempty"`
	Wake    *time.Duration `json:"wake,omitempty"`
	Changes []Change       `json:"changes,omitempty"`
}

// The values of In.
const (
	Start        = "start"
	Reconfigured = "reconfigured"
	Campaign     = "campaign"
	Withdraw     = "withdraw"
	Asked        = "asked"
	HandOver     = "hand-over"
	Finish       = "finish"
	Abandon      = "abandon"
	Observe      = "observe"
	Watching     = "watching"
	Tick         = "tick"
	Read         = "read"
	Written      = "written"
	Pushed       = "pushed"
	Nominated    = "nominated"
	Eligible     = "eligible"
	Question     = "question"
	Next         = "next"
	// Cut is the last line of a trace that could not be written fast enough.
	Cut = "cut"
)

// Settings are those of a protocol.Config.
type Settings struct {
	ID           string            `json:"id,omitempty"`
	Addr         string            `json:"address,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	Priority     int               `json:"priority,omitempty"`
	HasNominator bool              `json:"hasNominator,omitempty"`
	Precedence   time.Duration     `json:"precedence,omitempty"`
	NomineeOnly  bool              `json:"nomineeOnly,omitempty"`
	Lease        time.Duration     `json:"lease,omitempty"`
	Renew        time.Duration     `json:"renew,omitempty"`
	Budget       time.Duration     `json:"budget,omitempty"`
	Drift        uint32            `json:"driftPPM,omitempty"`
	StopWithin   time.Duration     `json:"stopWithin,omitempty"`
	FinishWithin time.Duration     `json:"finishWithin,omitempty"`
	Grace        time.Duration     `json:"grace,omitempty"`
	Splay        time.Duration     `json:"splay,omitempty"`
	Poll         time.Duration     `json:"poll,omitempty"`
	PollStable   time.Duration     `json:"pollStable,omitempty"`
	Retry        []time.Duration   `json:"retry,omitempty"`
	HeadStart    time.Duration     `json:"headStart,omitempty"`
	Hearsay      bool              `json:"hearsay,omitempty"`
	Rand         func() uint64     `json:"-"`
}

// Record is a record.Record.
type Record struct {
	LeaderID    string            `json:"leaderID,omitempty"`
	LeaderAddr  string            `json:"leaderAddr,omitempty"`
	LastUpdated time.Time         `json:"lastUpdated,omitzero"`
	Term        uint64            `json:"term,omitempty"`
	Lease       time.Duration     `json:"lease,omitempty"`
	Incarnation string            `json:"incarnation,omitempty"`
	Seq         uint64            `json:"seq,omitempty"`
	Nonce       string            `json:"nonce,omitempty"`
	Released    bool              `json:"released,omitempty"`
	Drift       uint32            `json:"driftPPM,omitempty"`
	Successor   string            `json:"successor,omitempty"`
	Request     *record.Request   `json:"request,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// Cell is a protocol.Cell.
type Cell struct {
	Kind       string         `json:"kind"`
	Version    driver.Version `json:"version,omitempty"`
	Pristine   bool           `json:"pristine,omitempty"`
	Unproven   bool           `json:"unproven,omitempty"`
	Unverified bool           `json:"unverified,omitempty"`
	Floor      uint64         `json:"floor,omitempty"`
	Ceiling    uint64         `json:"ceiling,omitempty"`
	Era        uint64         `json:"era,omitempty"`
	Record     *Record        `json:"record,omitempty"`
	Problem    string         `json:"problem,omitempty"`
	Notice     string         `json:"notice,omitempty"`
}

// Op is a protocol.Op. A read has no record.
type Op struct {
	ID      uint64         `json:"op"`
	Prev    driver.Version `json:"prev,omitempty"`
	Record  *Record        `json:"record,omitempty"`
	Timeout time.Duration  `json:"timeout"`
}

// Change is a protocol.Transition.
type Change struct {
	What   string `json:"what"`
	Term   uint64 `json:"term,omitempty"`
	Cause  string `json:"cause,omitempty"`
	Leader string `json:"leader,omitempty"` // its incarnation
}

var (
	kinds    = []string{protocol.Absent: "absent", protocol.Valid: "valid", protocol.Malformed: "malformed", protocol.Foreign: "foreign"}
	outcomes = []string{protocol.Applied: "applied", protocol.Conflict: "conflict", protocol.Denied: "denied", protocol.Unknown: "unknown"}
	changes  = []string{
		protocol.Candidacy: "candidate", protocol.Elected: "elected", protocol.Leaving: "leaving", protocol.Lost: "lost",
		protocol.Released: "released", protocol.Withdrawn: "withdrawn", protocol.NewLeader: "leader", protocol.Overdue: "overdue",
		protocol.Trouble: "trouble", protocol.Refused: "refused", protocol.Asking: "asking", protocol.Alarm: "alarm",
	}
)

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func cellOf(c *protocol.Cell) *Cell {
	out := &Cell{
		Kind: kinds[c.Kind], Version: c.Version, Pristine: c.Pristine, Unproven: c.Unproven, Unverified: c.Unverified,
		Floor: c.Floor, Ceiling: c.Ceiling, Era: c.Era, Problem: textOf(c.Problem), Notice: textOf(c.Notice()),
	}
	if c.Kind != protocol.Absent {
		r := Record(c.Record)
		out.Record = &r
	}
	return out
}

// decisions returns the line of the result of Next.
func decisions(todo *protocol.Todo) *Line {
	l := &Line{In: Next}
	if op := todo.Op; op != nil {
		l.Send = &Op{ID: op.ID, Timeout: op.Timeout}
		if op.Write {
			r := Record(op.Record)
			r.LastUpdated = r.LastUpdated.UTC()
			l.Send.Prev, l.Send.Record = op.Prev, &r
		}
	}
	if todo.Timed {
		l.Wake = &todo.Wake
	}
	for _, t := range todo.Transitions {
		l.Changes = append(l.Changes, Change{changes[t.What], t.Term, textOf(t.Cause), t.Leader.Incarnation})
	}
	return l
}

func (l *Line) at(now clock.Reading) *Line {
	l.At, l.Wall = [3]time.Duration{now.Mono, now.Raw, now.Boot}, now.Wall.UTC()
	return l
}
