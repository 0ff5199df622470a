//go:build integration

package slots_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/tenure-go/tenure/internal/overlay"
)

// TestPlantedBugs leaves out one rule after the other: then a test of this package fails.
func TestPlantedBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("each bug needs a build")
	}
	for name, bug := range map[string]struct {
		run string // one of these tests must fail
		overlay.Edit
	}{
		"a smaller number in a lower slot does not count": {"TestNumberOfSlots|TestViews", overlay.Edit{
			File: "session.go", Old: "seen && one.number <= smallest", New: "seen",
		}},
		"a view never ages": {"TestViews", overlay.Edit{
			File: "gate.go", Old: "g.within - g.clock.Now().LeaderSince(g.viewed)", New: "g.within",
		}},
		"a slot that was never seen counts as free": {"TestViews", overlay.Edit{
			File: "session.go", Old: "seen && one.number <= smallest", New: "one.number <= smallest",
		}},
		"damaged bytes count as a view": {"TestViews", overlay.Edit{
			File: "slot.go", Old: "ok && s.legible()", New: "ok",
		}},
		"the number of a vanished leader does not stand": {"TestViews", overlay.Edit{
			File: "slot.go", Old: "case s.size == 0 || ", New: "case true || s.size == 0 || ",
		}},
		"a member campaigns for all free slots": {"TestSlots", overlay.Edit{
			File: "session.go", Old: "s.engaged < s.m.cfg.PerMember && s.ctx", New: "s.engaged < len(s.m.slots) && s.ctx",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := overlay.Write(".", t.TempDir(), []overlay.Edit{bug.Edit})
			if err != nil {
				t.Fatal(err)
			}
			run := exec.Command("go", "test", "-count=1", "-timeout=2m", "-overlay", list, "-run", bug.run, ".")
			run.Env = os.Environ()
			if out, err := run.CombinedOutput(); err == nil {
				t.Errorf("no test fails:\n%s", out)
			} else if _, ended := err.(*exec.ExitError); !ended { //nolint:errorlint // exec returns it as it is
				t.Fatal(err)
			} else {
				t.Logf("%s", out[:min(len(out), 400)])
			}
		})
	}
}
