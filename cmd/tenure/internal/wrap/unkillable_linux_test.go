//go:build integration

package wrap

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/cmd/internal/test/guardtest"
	"github.com/tenure-go/tenure/cmd/internal/test/must"
	"github.com/tenure-go/tenure/cmd/tenure/internal/guarded"
	"github.com/tenure-go/tenure/driver/memory"
)

// The wrapper waits for a process that cannot be killed, because it must release nothing before
// that process ends. A second signal ends the wait.
func TestSecondSignalEndsTheWaitForAnUnkillableProcess(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be two users")
	}
	guardtest.Apart(t, func(t *testing.T) {
		s := &stage{t, memory.New(), guardtest.NewJournal(guardtest.Dir(t))}
		o := s.worker(guardtest.Worker{})
		o.Quit = os.Exit
		p := s.wrapper(tenure.Config{Lease: long}, o)
		p.begins(1)
		other := exec.Command("/bin/sh", "-c", fmt.Sprintf(
			`until grep -q "^Uid:.*65534" /proc/%d/status; do sleep 0.02; done; kill -KILL %d; sleep 3`, os.Getpid(), p.guard()))
		must.OK(t, other.Start())
		const nobody = 65534
		must.OK(t, syscall.Setresuid(nobody, nobody, nobody))
		<-p.wrapper.present().Dead()
		p.wrapper.Hear(syscall.SIGTERM)
		p.wrapper.Hear(syscall.SIGINT)
		p.ended()
		t.Error("it was not waited for")
	}, func(p *guardtest.Process) { p.Exits(guarded.CodeFailed) })
}
