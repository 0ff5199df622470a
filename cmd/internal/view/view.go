// Package view shows an election live on a terminal: the leader, the time left on the lease, a
// timeline of leaders, and how long failovers took. No other package imports the libraries for
// terminals.
//
// It does not use stores or processes. It receives facts, and the display depends only on them and
// on the time:
//
//	view.go      the facts, and the terminal: keys, sizes, ten frames a second
//	model.go     the state that follows from the facts: members, terms, failovers
//	frame.go     a frame of a given size at a given moment, with the failovers, the news and the legend
//	timeline.go  the lanes of the members, and their axis
//	text.go      colors and widths
package view

import (
	"context"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

// Fact is one thing that happened. Its texts may have any source: characters that a terminal must
// not print are replaced before they are shown.
type Fact struct {
	// At is when it happened, as far as this process can know. Facts come in this order, or nearly.
	At time.Time
	// What is the kind of fact. The other fields depend on it.
	What What
	// Who is the candidate's ID; empty if the fact is about none.
	Who string
	// Term is 0 where there is none.
	Term uint64
	// Text is one line of text.
	Text string
	// Address is the published address of a leader, for Elected and Renewed; empty where it is not
	// known.
	Address string
	// Lease is how long after At a successor has to wait, for Elected and Renewed; 0: Screen.Lease.
	Lease time.Duration
	// Written is when the record of a Named was written, by its writer's clock; zero if that is not
	// known.
	Written time.Time
	// AtLeast: the term of an Elected began before At.
	AtLeast bool
	// LeaseEnded is when the lease of the leader before ran out, for Elected and Nobody, if it is
	// not known whether that leader still acted after its last renewal; zero otherwise.
	LeaseEnded time.Time
	// Expected is, for Nobody, until when it is normal that no member leads; zero if it is not.
	Expected time.Time
	// Took is the time of the failover that an Elected completes, 0 if it was not measured. Least
	// is the least possible time, below 0 if that is unknown. Most is the longest possible time
	// where the store is polled, 0 where there is no such bound. Text is the reason for the
	// failover.
	Took, Least, Most time.Duration
	// TookAtLeast: the failover took Took or longer. Downtime is the part of it in which no member
	// had a lease, 0 if that is not known. Late is by how much reads may delay it, as for
	// story.Tardy.
	TookAtLeast    bool
	Downtime, Late time.Duration
}

// What names the kind of fact. Any other value is only shown in the news, unchanged.
type What string

// The kinds of fact.
const (
	Started What = "started" // Who has started, and does not follow the record yet
	Follows What = "follows" // Who campaigns or observes
	// Who leads in Term. The same Who and Term again change the Address, or confirm a Named
	Elected  What = "elected"
	Named    What = "named"    // a record names Who as the leader of Term; no renewal was seen
	Renewed  What = "renewed"  // the leader of Term was seen to renew, perhaps before its Elected
	Asked    What = "asked"    // the leader Who was asked to hand over or to end
	Leaving  What = "leaving"  // the leader Who finishes its work
	Released What = "released" // Who has released the lease of Term
	Lost     What = "lost"     // Who has lost Term in another way
	Crashed  What = "crashed"  // the process of Who died
	Frozen   What = "frozen"   // the process of Who was stopped
	Woken    What = "woken"    // the process of Who continues
	Ended    What = "ended"    // the process of Who ended normally
	Nobody   What = "nobody"   // nobody leads
	Overlap  What = "overlap"  // two led at once; Text names them
	Alarm    What = "alarm"    // an operator should look
	Trouble  What = "trouble"  // the store failed or refused
	Note     What = "note"     // any other remark
	// Text is the number of checks so far; shown in the corner, not in the news
	Checked What = "checked"
)

// Screen is the constant part of the display.
type Screen struct {
	// Title is the command's name.
	Title    string
	Place    string // without credentials
	Election string
	// Lease is the length of the whole bar. A column of the timeline is half of it.
	Lease time.Duration
	Renew time.Duration
	// Members are shown from the start; others as they appear.
	Members []string
	// Hints are lines at the end with commands to type in another terminal. A line that is too long
	// is not shown.
	Hints []string
	// Began is when the timeline begins; zero: with the first fact.
	Began time.Time
	// Colour permits colors. The display has the same information without them.
	Colour bool
}

// pace is the time from one frame to the next.
const pace = 100 * time.Millisecond

// Run shows facts as they come, on the terminal out. It returns nil when ctx ends, facts is closed,
// or the user ends the view, and an error after a panic in this package. In all cases it restores
// the terminal. It reads keys from in if that is a terminal; in may be nil.
//
// While the terminal hangs, Run does not read facts: send them without waiting.
func Run(ctx context.Context, in, out *os.File, s Screen, facts <-chan Fact) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the wait for a fact, which would outlive the program
	return show(in, out, &program{model: New(s), facts: facts, done: ctx.Done()})
}

// show runs the program, and returns nil when it has ended by itself. The caller handles signals by
// ending the context.
func show(in, out *os.File, m tea.Model) error {
	fps := tea.WithFPS(int(time.Second / pace))
	_, err := tea.NewProgram(m, tea.WithOutput(out), keys(in), fps, tea.WithoutSignalHandler()).Run()
	if err != nil {
		return fmt.Errorf("the live view: %w", err)
	}
	return nil
}

func keys(in *os.File) tea.ProgramOption {
	if !output.Keys(in) {
		return tea.WithInput(nil)
	}
	return tea.WithInput(in)
}

// program holds the functions that the terminal's library calls. One goroutine makes all calls, and
// restores the terminal after a panic.
type program struct {
	model         *Model
	facts         <-chan Fact
	done          <-chan struct{}
	width, height int
	frame         string
}

// next is the message that the next frame is due.
type next time.Time

// Init begins to wait for facts.
func (p *program) Init() tea.Cmd { return tea.Batch(p.hear, tick()) }

func tick() tea.Cmd {
	return tea.Tick(pace, func(at time.Time) tea.Msg { return next(at) })
}

// hear waits for a fact. There is one such wait at a time.
func (p *program) hear() tea.Msg {
	select {
	case f, ok := <-p.facts:
		if ok {
			return f
		}
	case <-p.done:
	}
	return tea.QuitMsg{}
}

// Update takes a message. It draws at the pace, not for each fact.
func (p *program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case Fact:
		p.model.Take(msg)
		return p, p.hear
	case next:
		p.draw(time.Time(msg))
		return p, tick()
	case tea.WindowSizeMsg:
		p.width, p.height = msg.Width, msg.Height
		p.draw(time.Now())
	case tea.KeyPressMsg:
		if k := msg.String(); k == "q" || k == "Q" || k == "ctrl+c" {
			return p, tea.Quit
		}
	}
	return p, nil
}

func (p *program) draw(now time.Time) { p.frame = p.model.Frame(p.width, p.height, now) }

// View returns the last frame. The library writes it to the terminal if it has changed.
func (p *program) View() tea.View {
	return tea.View{Content: p.frame, AltScreen: true}
}
