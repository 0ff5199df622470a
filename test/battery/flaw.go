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

// flaw is a planted mistake: a change to the source of tenure that makes a row fail.
type flaw struct {
	name string
	left string // the part that is left out or changed
	edit []overlay.Edit
	// shows reports whether the flaw shows in an outcome.
	shows func(outcome) bool
}

// These functions are values of flaw.shows.
func overlaps(o outcome) bool  { return o.acts.Stale > 0 }
func regresses(o outcome) bool { return o.acts.Regressed > 0 }

// broken is a binary of tenure with a flaw. It is built once.
type broken struct {
	once   sync.Once
	binary string
	err    error
}

// binary returns the path of a tenure with the flaw, or without one if f is nil.
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

// source returns the directory with the source of tenure.
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
