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
