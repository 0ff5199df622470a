//go:build integration && unix

package view

import (
	"context"
	"os"

	tea "charm.land/bubbletea/v2"
)

// These constants name the places where a program can be made to panic.
const (
	PanicUpdate = "update"
	PanicView   = "view"
	PanicCmd    = "command"
)

// RunPanicking is Run with a program that panics at the given place when the user presses p.
func RunPanicking(ctx context.Context, in, out *os.File, s Screen, facts <-chan Fact, where string) error {
	return show(in, out, &panicking{program: &program{model: New(s), facts: facts, done: ctx.Done()}, where: where})
}

type panicking struct {
	*program
	where string
	due   bool
}

func (p *panicking) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	_, cmd := p.program.Update(msg)
	if key, ok := msg.(tea.KeyPressMsg); ok {
		p.due = key.String() == "p"
	}
	switch {
	case p.due && p.where == PanicUpdate:
		panic("planted in Update")
	case p.due && p.where == PanicCmd:
		return p, func() tea.Msg { panic("planted in a command") }
	}
	return p, cmd
}

func (p *panicking) View() tea.View {
	if p.due && p.where == PanicView {
		panic("planted in View")
	}
	return p.program.View()
}
