package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/internal/overlay"
)

// flaw is a mistake on purpose: a change to the source of tenure, with which a row must fail.
type flaw struct {
	name string
	left string // the part that is left out, or done otherwise
	edit []overlay.Edit
	// shows reports whether an outcome gives it away.
	shows func(outcome) bool
}

// The outcomes that show a flaw.
func overlaps(o outcome) bool  { return o.acts.Stale > 0 }
func regresses(o outcome) bool { return o.acts.Regressed > 0 }

// broken is a tenure with a flaw, which is built once.
type broken struct {
	once   sync.Once
	binary string
	err    error
}

// binary is tenure, with a flaw if one is given.
func (b *battery) binary(f *flaw) (string, error) {
	if f == nil {
		return b.tenure, nil
	}
	b.mu.Lock()
	x := b.broken[f]
	if x == nil {
		x = &broken{}
		b.broken[f] = x
	}
	b.mu.Unlock()
	x.once.Do(func() { x.binary, x.err = f.build(b) })
	return x.binary, x.err
}

func (f *flaw) build(b *battery) (string, error) {
	dir := filepath.Join(b.bin, f.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	top, err := source()
	if err != nil {
		return "", fmt.Errorf("finding the source of tenure: %w", err)
	}
	list, err := f.overlay(top, dir)
	if err != nil {
		return "", err
	}
	return build(b.ctx, dir, "tenure", tenurePackage, "-overlay", list)
}

// source is where the source of tenure is.
var source = sync.OnceValues(func() (string, error) {
	top, err := exec.Command("go", "list", "-f", "{{.Dir}}", tenurePackage).Output()
	return strings.TrimSpace(string(top)), err
})

// overlay writes the files for go build into dir, with the source of tenure at top.
func (f *flaw) overlay(top, dir string) (string, error) {
	list, err := overlay.Write(top, dir, f.edit)
	if err != nil {
		return "", fmt.Errorf("flaw %s: %w", f.name, err)
	}
	return list, nil
}
