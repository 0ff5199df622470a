//go:build integration

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/internal/test/wait"
)

// Observers that start late do not say that a leader leads before it renews: neither of one that is
// alive, nor of one whose processes were killed.
func TestObserversThatStartLate(t *testing.T) {
	t.Parallel()
	for name, home := range map[string]func(*testing.T) *home{
		"NATS":   natsHome,
		"SQLite": func(t *testing.T) *home { return homeAt(t, "sqlite:"+filepath.Join(t.TempDir(), "e.db")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := home(t)
			w := h.wrap([]string{"--lease", "2s"}, "sh", "-c", "echo up; exec sleep 1000").start()
			w.says("up\n")
			alive := tenureRuns(t, h.args("watch")...).start()
			alive.says("  node-1 leads in term")
			if said := alive.out.String(); !strings.Contains(said, "is not confirmed: last written ") || !strings.Contains(said, ", since at least ") {
				t.Errorf("of a leader that is alive, watch says\n%s", said)
			}
			w.stopWithoutGuard()
			w.signal(syscall.SIGKILL)
			alive.says("nobody leads: ")
			saysDead(h)
		})
	}
}

// saysDead checks what observers say of a leader that was killed more than a lease ago.
func saysDead(h *home) {
	h.Helper()
	wait.Until(h.T, "the record is old", func() bool { return h.says("status", "--wait", "0").code == 4 })
	h.says("status").must(h.T, 3, `^node-1 is not confirmed: last written \S+ \S+ ago, by its writer's clock; waiting up to 2s for a renewal$`,
		`^record    node-1 held it in term \d+; its lease of 2s has run out$`)
	late := tenureRuns(h.T, h.args("watch")...).start()
	late.says("nobody leads: the record names node-1, last written ")
	late.says(" ago by its clock, and no renewal was seen for its lease of 2s")
	if said := late.out.String(); strings.Contains(said, " leads in term") || !strings.Contains(said, " is not confirmed: last written ") {
		h.Errorf("of a dead leader, watch says\n%s", said)
	}
}
