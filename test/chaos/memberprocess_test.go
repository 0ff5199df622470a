//go:build integration && linux

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/test/internal/asking"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/relay"
)

// settings are the settings of a member process.
type settings struct {
	URL, Bucket string
	Lease       time.Duration
	Own         bool // it has its own connection; otherwise it borrows one
	Lingers     bool // its work stops only when the process should end
}

// settingsVariable holds the settings. It makes TestMemberProcess a member.
const settingsVariable = "TENURE_TEST_MEMBER"

// memberID is the ID of a member process.
const memberID = "process"

// A member process begins each line with one of these words. saysActs is followed by a token and
// stamps.
const (
	saysActs    = "acts"    // its term was valid when it checked
	saysFollows = "follows" // it sees that another member leads
	saysVacant  = "vacant"  // it sees a vacancy
	saysRemade  = "remade"  // it sees that the store was recreated
)

// TestMemberProcess is not a test. It is the program of a member process, which takes part until
// its standard input ends.
func TestMemberProcess(t *testing.T) {
	text := os.Getenv(settingsVariable)
	if text == "" {
		t.Skip("the other tests start it")
	}
	var s settings
	must(t, json.Unmarshal([]byte(text), &s))
	opts := []natskv.Option{natskv.Pristine()}
	if s.Own {
		opts = append(opts, natskv.OwnConnection())
	}
	store := openStore(t, connect(t, s.URL), s.Bucket, opts...)
	e, err := tenure.New(store, key, tenure.Config{ID: memberID, Lease: s.Lease, OnEvent: printEvent})
	must(t, err)
	asker := asking.Start(func(_ string, token uint64, stamps []int64) {
		fmt.Println(saysActs, token, strings.Trim(fmt.Sprint(stamps), "[]"))
	})
	defer asker.Stop()
	must(t, takePart(e, asker, s.Lingers))
}

// takePart campaigns until the standard input ends.
func takePart(e *tenure.Election, asker *asking.Asker, lingers bool) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return e.Run(ctx, func(soft context.Context, t *tenure.Term) error {
		asker.Enter(key, t, asking.ByTerm)
		<-soft.Done()
		if lingers {
			<-ctx.Done()
		}
		return nil
	})
}

func printEvent(e tenure.Event) {
	switch {
	case errors.Is(e.Cause, tenure.ErrRemade):
		fmt.Println(saysRemade)
	case e.Kind == tenure.EventLeader && !e.Leader.Exists():
		fmt.Println(saysVacant)
	case e.Kind == tenure.EventLeader && e.Leader.ID != e.ID:
		fmt.Println(saysFollows)
	}
}

// process is a candidate in its own process, which can be stopped.
type process struct {
	f     *field
	relay *relay.Relay
	cmd   *exec.Cmd
	leave func() // ends the process gracefully and waits for it

	mu      sync.Mutex
	printed map[string]int // how often it printed each word
	token   uint64         // the highest token
}

// start starts a member process.
func (f *field) start(own, lingers bool) *process {
	f.Helper()
	p := &process{f: f, relay: startRelay(f, f.server), printed: map[string]int{}}
	text, err := json.Marshal(settings{p.relay.URL(), f.kv.Bucket(), f.lease, own, lingers})
	must(f, err)
	p.cmd = exec.Command(os.Args[0], "-test.run=^TestMemberProcess$")
	p.cmd.Env = append(os.Environ(), settingsVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	machine.Together(p.cmd)
	in, err := p.cmd.StdinPipe()
	must(f, err)
	out, err := p.cmd.StdoutPipe()
	must(f, err)
	must(f, p.cmd.Start())
	readAll := make(chan struct{})
	go func() {
		defer close(readAll)
		p.read(out)
	}()
	p.leave = sync.OnceFunc(func() {
		p.relay.Heal()
		_ = machine.Resume(p.cmd.Process.Pid)
		_ = in.Close()
		<-readAll
		if err := p.cmd.Wait(); err != nil {
			f.Errorf("the member process: %v", err)
		}
	})
	f.Cleanup(p.leave)
	return p
}

// read records the answers of the process, and keeps its output.
func (p *process) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		p.mu.Lock()
		p.printed[word]++
		p.mu.Unlock()
		if word == saysActs {
			p.book(strings.Fields(rest))
		}
	}
}

// book records a token and stamps.
func (p *process) book(fields []string) {
	var numbers []int64
	for _, text := range fields {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			p.f.Errorf("the member process says %q", fields)
			return
		}
		numbers = append(numbers, n)
	}
	token := uint64(numbers[0]) //nolint:gosec // tokens are below 2^53
	p.f.book.Add(key, memberID, token, numbers[1:]...)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token = max(p.token, token)
}

// leads waits until the process leads with a token other than the given one, and returns its token.
func (p *process) leads(other uint64) (token uint64) {
	p.f.Helper()
	wait.Until(p.f, "the member process leads", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		token = p.token
		return token != 0 && token != other
	})
	return token
}

// says waits until the process has printed a word.
func (p *process) says(word string) {
	p.f.Helper()
	wait.Until(p.f, "the member process says "+word, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.printed[word] > 0
	})
}

// stop stops the process with SIGSTOP.
func (p *process) stop() {
	p.f.Helper()
	must(p.f, machine.Pause(p.cmd.Process.Pid))
}

// resume lets the process continue.
func (p *process) resume() {
	p.f.Helper()
	must(p.f, machine.Resume(p.cmd.Process.Pid))
}
