package rig

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/internal/test/ports"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/process"
)

// Emulator is a server of a cloud store that others wrote. It keeps all in memory, so tests pause
// it and never kill it.
type Emulator struct {
	*process.Process
	address string
}

// StartEmulator starts a process in a directory, with the command that listens on a port of
// 127.0.0.1, and waits until create has made the place for elections.
func StartEmulator(dir string, command func(port int) *process.Process, create func(ctx context.Context, address string) error) (Emulator, error) {
	free, err := ports.Free(1)
	if err != nil {
		return Emulator{}, err
	}
	e := Emulator{command(free[0]), ports.Address(free[0])}
	e.Dir, e.Answers = dir, func(ctx context.Context) error { return create(ctx, e.address) }
	return e, e.Start()
}

// EmulatorFor starts an emulator for the length of a test.
func EmulatorFor(t testing.TB, start func(ctx context.Context, dir string) (Emulator, error)) Emulator {
	t.Helper()
	e, err := start(wait.Context(t), t.TempDir())
	Must(t, err)
	t.Cleanup(e.End)
	return e
}

// Address returns HOST:PORT.
func (e Emulator) Address() string { return e.address }

// URL returns the address as a URL.
func (e Emulator) URL() string { return "http://" + e.address }

// Addresses returns Address, for a Running.
func (e Emulator) Addresses() []string { return []string{e.address} }

// End kills the process, for a Running.
func (e Emulator) End() { _ = e.Kill() }

// Faults are pauses.
func (e Emulator) Faults() []Fault {
	all := Of(func(*rand.Rand) Server { return e }, Writers)
	return all[len(all)-1:]
}
