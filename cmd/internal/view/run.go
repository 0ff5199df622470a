package view

import (
	"context"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/tenure-go/tenure/cmd/internal/output"
)

// pace is the time from one frame to the next.
const pace = 100 * time.Millisecond

// Run shows facts as they come, on the terminal out, until ctx ends, facts is closed, or the user
// wants no more, and returns nil then. In all cases, and after a panic in here too, which makes it
// return an error, the terminal is as it was before. Keys are read from in if that is a terminal;
// it may be nil.
//
// A terminal that hangs makes Run stop reading facts: send them without waiting.
func Run(ctx context.Context, in, out *os.File, s Screen, facts <-chan Fact) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // for the wait for a fact, which outlives the program otherwise
	return show(in, out, &program{model: New(s), facts: facts, done: ctx.Done()})
}

// show returns nil when the program ended by itself. The caller handles signals: it ends the
// context.
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

// program is driven by the terminal's library. One goroutine makes all calls, and restores the
// terminal when it panics.
type program struct {
	model         *Model
	facts         <-chan Fact
	done          <-chan struct{}
	width, height int
	frame         string
}

// next is the time for the next frame.
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

// Update draws at the pace, however much happens.
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

// View is written to the terminal if it is another one than before.
func (p *program) View() tea.View {
	return tea.View{Content: p.frame, AltScreen: true}
}
