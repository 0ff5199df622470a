//go:build integration

package k8s

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/tenure-go/tenure/internal/test/wait"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/k8sd"
	"github.com/tenure-go/tenure/test/internal/machine"
	"github.com/tenure-go/tenure/test/internal/rig"
)

func init() { roles["worker"], roles["elector"] = worker, elector }

// The environment of the processes that this program starts from itself.
const (
	journalVariable  = "K8S_TEST_JOURNAL"
	numberVariable   = "K8S_TEST_NUMBER"
	releasesVariable = "K8S_TEST_RELEASES"
)

const pace = 5 * time.Millisecond

// act writes acts into the journal until the context ends. A leader of client-go has no token: its
// terms are numbered.
func act(ctx context.Context, number uint32, term uint64) {
	w, err := witness.Open(os.Getenv(journalVariable))
	if err != nil {
		return
	}
	defer func() { _ = w.Close() }()
	pid := uint32(os.Getpid())
	for tick := time.NewTicker(pace); ctx.Err() == nil; <-tick.C {
		r := witness.Record{At: machine.Now(), Token: term, Candidate: number, What: witness.Act, PID: pid, Root: pid}
		if err := w.Write(r); err != nil {
			return
		}
	}
}

// worker is the command of tenure run. It acts until it is asked to stop.
func worker() {
	number, _ := strconv.ParseUint(strings.TrimPrefix(os.Getenv("TENURE_ID"), "c"), 10, 32)
	token, _ := strconv.ParseUint(os.Getenv("TENURE_TOKEN"), 10, 64)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	act(ctx, uint32(number), token)
}

// elector is a process with an elector of client-go, which acts while that says that it leads.
func elector() {
	number, _ := strconv.ParseUint(os.Getenv(numberVariable), 10, 32)
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config.QPS = -1
	leases, err := coordination.NewForConfig(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var term uint64
	for ctx.Err() == nil {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lockOn(leases, k8sd.Namespace, fmt.Sprint("pod-", number)), LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: retry,
			ReleaseOnCancel: os.Getenv(releasesVariable) != "",
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(leading context.Context) {
					term++
					act(leading, uint32(number), term)
				},
				OnStoppedLeading: func() {},
			},
		})
	}
}

// processes are real ones: three places for electors of client-go, and three for tenure run.
type processes struct {
	t       *testing.T
	rng     *rand.Rand
	server  *k8sd.Server
	tenure  string
	env     []string
	journal *witness.Reader
	seen    []witness.Record
	all     [6]*command.Process
}

// start starts the process of a place.
func (p *processes) start(i int) {
	self, err := os.Executable()
	rig.Must(p.t, err)
	args := append(slices.Clone(p.env), roleVariable+"=worker", p.tenure, "run", "--store", "k8s:"+k8sd.Namespace+"/",
		"--election", name, "--id", fmt.Sprint("c", i), "--lease", duration.String(), "--", self)
	if isOld(uint32(i)) {
		args = append(slices.Clone(p.env), roleVariable+"=elector", fmt.Sprint(numberVariable, "=", i))
		if i > 0 {
			args = append(args, releasesVariable+"=1")
		}
		args = append(args, self)
	}
	p.all[i] = command.Start(p.t, "env", args...)
}

// end ends a process, if it runs. Without a crash it may release the Lease.
func (p *processes) end(i int, crash bool) {
	if p.all[i] == nil {
		return
	}
	if !crash {
		rig.Must(p.t, p.all[i].Stop())
		<-p.all[i].Ended()
	}
	p.all[i].Kill()
	p.all[i] = nil
}

// look reads the journal.
func (p *processes) look() {
	news, err := p.journal.Next()
	rig.Must(p.t, err)
	p.seen = append(p.seen, news...)
}

// leader waits for an act of any process after this moment, and returns its place.
func (p *processes) leader() int {
	p.t.Helper()
	since, leader := machine.Now(), 0
	wait.Until(p.t, "a leader that acts", func() bool {
		p.look()
		last := p.seen[max(0, len(p.seen)-1):]
		if len(last) == 0 || last[0].At < since {
			return false
		}
		leader = int(last[0].Candidate)
		return p.all[leader] != nil
	})
	return leader
}

// happen lets one thing happen, mostly to the leader. An elector of client-go that leads may stand
// still only as long as its settings allow: see TestLateReleasesMakeTwoLeaders.
func (p *processes) happen() {
	i := p.leader()
	what := p.rng.IntN(4)
	p.t.Logf("%d happens to %d", what, i)
	switch what {
	case 0, 1:
		p.end(i, what == 0)
		p.leader()
		p.start(i)
	case 2:
		long := duration + duration/3
		if isOld(uint32(i)) {
			long = briefly / 2
		}
		rig.Must(p.t, p.all[i].Freeze())
		time.Sleep(long)
		rig.Must(p.t, p.all[i].Continue())
	default:
		rig.Must(p.t, p.server.Kill())
		rig.Must(p.t, p.server.Process.Start())
	}
	p.leader()
}

func isOld(candidate uint32) bool { return candidate < 3 }

// reign is an uninterrupted leadership.
type reign struct {
	candidate, pid uint32
	term           uint64
}

// verdict is the result of judgeActs.
type verdict struct {
	faults                     []string
	reigns, oldToNew, newToOld int
}

// judgeActs finds reigns that overlap, unless both are of client-go, and terms that do not grow. It
// counts the changes from one kind to the other.
func judgeActs(acts []witness.Record) (v verdict) {
	slices.SortStableFunc(acts, func(a, b witness.Record) int { return cmp.Compare(a.At, b.At) })
	first, last := map[reign]int64{}, map[reign]int64{}
	var order []reign
	for _, a := range acts {
		r := reign{a.Candidate, a.PID, a.Token}
		if _, ok := first[r]; !ok {
			first[r], order = a.At, append(order, r)
		}
		last[r] = a.At
	}
	var token uint64
	for i, r := range order {
		for _, before := range order[:i] {
			if last[before] > first[r] && !(isOld(r.candidate) && isOld(before.candidate)) {
				v.faults = append(v.faults, fmt.Sprintf("%+v acts %v after the first act of %+v", before, time.Duration(last[before]-first[r]), r))
			}
		}
		if !isOld(r.candidate) {
			if r.term <= token {
				v.faults = append(v.faults, fmt.Sprintf("term %d follows term %d", r.term, token))
			}
			token = r.term
		}
		switch {
		case i == 0:
		case isOld(order[i-1].candidate) && !isOld(r.candidate):
			v.oldToNew++
		case !isOld(order[i-1].candidate) && isOld(r.candidate):
			v.newToOld++
		}
	}
	v.reigns = len(order)
	return v
}

// TestJudgeActs: the judge of TestRealMigration finds two leaders and a term that falls.
func TestJudgeActs(t *testing.T) {
	at := func(at int64, candidate uint32, term uint64) witness.Record {
		return witness.Record{At: at, Candidate: candidate, Token: term, PID: candidate + 1}
	}
	for what, c := range map[string]struct {
		acts   []witness.Record
		faults int
	}{
		"one after the other":               {[]witness.Record{at(1, 0, 1), at(2, 0, 1), at(3, 3, 9), at(4, 1, 1), at(5, 4, 10)}, 0},
		"a candidate beside an elector":     {[]witness.Record{at(1, 0, 1), at(2, 3, 9), at(3, 0, 1)}, 1},
		"an elector beside a candidate":     {[]witness.Record{at(1, 3, 9), at(2, 0, 1), at(3, 3, 9)}, 1},
		"two candidates":                    {[]witness.Record{at(1, 3, 9), at(2, 4, 10), at(3, 3, 9)}, 1},
		"two electors, as client-go allows": {[]witness.Record{at(1, 0, 1), at(2, 1, 1), at(3, 0, 1)}, 0},
		"a term that falls":                 {[]witness.Record{at(1, 3, 9), at(2, 4, 8)}, 1},
		"a late record":                     {[]witness.Record{at(3, 3, 9), at(1, 0, 1), at(2, 0, 1)}, 0},
	} {
		if v := judgeActs(c.acts); len(v.faults) != c.faults {
			t.Errorf("%s: %q", what, v.faults)
		}
	}
}

// TestRealMigration is TestRollingMigration with processes, on the library of the API server:
// electors of client-go are replaced by tenure run, and one of them is brought back. Processes are
// killed, stopped and frozen, and the API server is killed.
func TestRealMigration(t *testing.T) {
	if testing.Short() {
		t.Skip("the soak does it")
	}
	t.Parallel()
	server, err := k8sd.APIServer.Start(t.TempDir())
	rig.Must(t, err)
	t.Cleanup(server.End)
	dir, seed := t.TempDir(), rand.Uint64()
	t.Logf("seed %d", seed)
	config, journal := filepath.Join(dir, "config"), filepath.Join(dir, "journal")
	rig.Must(t, os.WriteFile(config, []byte(k8sd.Kubeconfig("https://"+server.Address(), "token: "+k8sd.Admin)), 0o600))
	rig.Must(t, os.WriteFile(journal, nil, 0o600))
	reader, err := witness.Follow(journal)
	rig.Must(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	p := &processes{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), server: server, tenure: command.Build(t), journal: reader,
		env: []string{"KUBECONFIG=" + config, journalVariable + "=" + journal},
	}
	for i := range 3 {
		p.start(i)
	}
	for i := range 3 {
		p.happen()
		p.start(3 + i)
		p.happen()
		p.end(i, false)
		if i == 1 { // roll back
			p.end(3, false)
			p.start(0)
			p.end(4, false)
			p.leader()
			p.happen()
			p.start(3)
			p.start(4)
			p.end(0, false)
		}
	}
	p.happen()
	for i := range p.all {
		p.end(i, false)
	}
	p.look()
	v := judgeActs(p.seen)
	t.Logf("%d reigns, %d times from old to new, %d back", v.reigns, v.oldToNew, v.newToOld)
	for _, fault := range v.faults {
		t.Error(fault)
	}
	if v.oldToNew == 0 {
		t.Error("tenure run never followed an elector of client-go")
	}
}
