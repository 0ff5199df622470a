package main

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tenure-go/tenure/test/internal/rig"
	"github.com/tenure-go/tenure/test/internal/rigs"
)

// row is one kind of fault, or a measurement.
type row struct {
	name  string
	title string
	store string
	// worker holds the flags of the worker, and run the flags of tenure run.
	worker, run []string
	// cron holds the flags of tenure cron, which then takes the place of tenure run. Its controls
	// are for full runs only, since they need another build.
	cron []string
	// agent is set if tenure agent takes the place of tenure run. Its workers are clients of it.
	agent bool
	// former is set if all candidates begin as the former version.
	former bool
	// by is a program that runs the worker; empty: tenure does.
	by []string
	// play is called when there is a leader. It adds its findings to the stage.
	play func(*stage)
	// code is the exit code of a tenure that is asked to stop while it leads.
	code int
	// lingers is set if a tenure may still be ending after the faults: a tenure whose command was
	// killed runs on for a while, and does not lead again.
	lingers bool
	// alone rows run alone, except in a quick run. single rows run once, whatever -runs says.
	// measuring rows yield only figures, so a quick run leaves them out.
	// A quick run also leaves out full rows, which are like others.
	alone, single, measuring, full bool
	// flaws are the flaws with which this row must fail.
	flaws []*flaw
}

// kind is the kind of server that the candidates use.
func (r row) kind() rig.Kind { return rigs.Kind(r.store) }

// once injects one fault. Only the journal judges the run.
func once(f fault) func(*stage) {
	return afterwards(func(s *stage) { s.inject(f) })
}

// afterwards calls play when the other candidates follow.
func afterwards(play func(*stage)) func(*stage) {
	return func(s *stage) {
		s.settle()
		play(s)
	}
}

func rows() []row {
	return slices.Concat(processRows(), networkRows(), workerRows(), strayRows(), orderlyRows(), longRows(), cronRows(), agentRows(), versionRows())
}

func processRows() []row {
	return []row{
		{name: "crash", title: "the leader's tenure is killed (SIGKILL)", play: once(crash), flaws: []*flaw{noGuard}},
		{name: "crash-both", title: "the leader's tenure and guard are killed at once", play: once(crashBoth), flaws: []*flaw{noGuard}},
		{name: "crash-guard", title: "the leader's guard is killed", play: once(crashGuard), flaws: []*flaw{noLastLines}},
		{name: "freeze", title: "the leader's tenure is stopped (SIGSTOP) for 2 leases", play: once(freeze), flaws: []*flaw{noGuard}},
		{name: "freeze-both", title: "the leader's tenure and guard are stopped for 2 leases", play: once(freezeBoth), flaws: []*flaw{noKernelTimer}},
		{name: "freeze-guard", title: "the leader's guard is stopped, and the leader leads on", play: afterwards((*stage).stopGuard)},
		{name: "crash-freeze", title: "the leader's guard is stopped and its tenure killed", play: once(crashFreeze), flaws: []*flaw{noGuard}},
		{name: "freeze-crash", title: "the leader's tenure is stopped for 2 leases and its guard killed", play: once(freezeCrash), flaws: []*flaw{noGuard}},
		{name: "freeze-guard-lost", title: "as freeze-guard, and all that the leader sends and is sent is lost for 2.5 leases", play: once(freezeGuardLost),
			flaws: []*flaw{deadlineIgnored}},
		{name: "freeze-spare", title: "a follower's guard is stopped, and then the leader is asked to hand over to that follower", play: afterwards((*stage).handOverToFrozen)},
	}
}

func networkRows() []row {
	return []row{
		{name: "blackhole", title: "all that the leader sends and is sent is lost for 2.5 leases, its connection stays", play: once(blackhole),
			flaws: []*flaw{deadlineIgnored}},
		{name: "cut", title: "the leader's connection is reset, and new ones are refused for 2.5 leases", play: once(cut), flaws: []*flaw{deadlineIgnored}},
		{name: "mute", title: "what the leader sends arrives and the answers are lost for 2.5 leases", play: once(mute), flaws: []*flaw{deadlineIgnored}},
		{name: "delay", title: "what the leader sends and is sent takes 1.2 leases each way for 3 leases, and arrives then", play: once(delay),
			flaws: []*flaw{deadlineIgnored}},
		{name: "outage", title: "the server is killed, and started again on its files after 1.5 leases", play: once(outage), flaws: []*flaw{deadlineIgnored}},
		{name: "hang", title: "the server is stopped for 3 leases", play: once(hang), flaws: []*flaw{deadlineIgnored}},
	}
}

// The exit codes of a tenure whose command was ended by SIGKILL or SIGTERM, as in shells, and of
// one that was itself ended by a signal.
const (
	codeKilled = 128 + 9
	codeAsked  = 128 + 15
	codeSignal = -1
)

// The flags of workers that end late, ignore SIGTERM, or have children.
var (
	slow  = []string{"-stop", "300ms"}
	deaf  = []string{"-deaf"}
	forks = []string{"-children", "2", "-strays", "1"}
	tidy  = []string{"-children", "2", "-tidy"}
)

func workerRows() []row {
	short := []string{"--finish-within", "1s"}
	return []row{
		{name: "slow-lost", title: "a worker that needs 300 ms to stop; as blackhole", play: once(blackhole), worker: slow,
			run: []string{"--stop-within", "500ms"}, flaws: []*flaw{noTimeToStop}},
		{name: "slow-stop", title: "the same worker; as stop", play: afterwards((*stage).stopLeader), worker: slow, flaws: []*flaw{releasedEarly}},
		{name: "slow-handover", title: "the same worker; as hand-over", play: (*stage).handOvers, worker: slow, flaws: []*flaw{releasedEarly}},
		{name: "deaf-lost", title: "a worker that ignores SIGTERM; as blackhole", play: once(blackhole), worker: deaf, run: short, code: codeKilled,
			flaws: []*flaw{noKill}},
		{name: "deaf-crash", title: "the same worker; as crash", play: once(crash), worker: deaf, run: short, code: codeKilled,
			flaws: []*flaw{noKill}},
		{name: "deaf-thaw", title: "the same worker, with 800 ms to stop; tenure is stopped, and goes on in that time", play: afterwards((*stage).thaw),
			worker: deaf, run: append([]string{"--stop-within", thawing.String()}, short...), code: codeKilled, flaws: []*flaw{noLatch}},
		{name: "deaf-stop", title: "the same worker, with 1 s to finish; as stop", play: afterwards((*stage).stopLeader), worker: deaf, run: short,
			code: codeKilled, flaws: []*flaw{releasedEarly}},
		{name: "forks-lost", title: "a worker with two children in its group and one in a session of its own, all of which ignore SIGTERM; as blackhole",
			play: once(blackhole), worker: forks, flaws: []*flaw{commandAlone}},
		{name: "forks-crash", title: "the same worker; as crash", play: once(crash), worker: forks, flaws: []*flaw{commandAlone}},
		{name: "forks-guard", title: "the same worker; as crash-guard", play: once(crashGuard), worker: forks, flaws: []*flaw{straysForgotten}},
		{name: "forks-stop", title: "the same worker; as stop", play: afterwards((*stage).stopLeader), worker: forks, flaws: []*flaw{commandAlone}},
		{name: "forks-both", title: "a worker with two such children in its group, which all close the files that they have inherited; as crash-both",
			play: once(crashBoth), worker: tidy, flaws: []*flaw{groupForgotten}},
		{name: "forks-freeze", title: "the same worker; as freeze-both", play: once(freezeBoth), worker: tidy, flaws: []*flaw{noKernelTimer}},
	}
}

// strays are commands whose worker is outside of their process group. Timeout makes a group of its
// own, and set -m one for each job. A daemon makes a session of its own, and closes its files.
var strays = []struct {
	name, title string
	by          []string
}{
	{"timeout", "a shell runs the worker, which ignores SIGTERM, by timeout", []string{"sh", "-c", `timeout 1000 "$0" "$@"; true`}},
	{"job", "a shell runs that worker as a job (set -m)", []string{"bash", "-c", `set -m; "$0" "$@" & wait`}},
	{"daemon", "a shell runs that worker as a daemon (setsid), which closes the files that it has inherited", []string{"sh", "-c", `setsid "$0" "$@" -tidy & wait`}},
}

// strayRows need the PID namespace only where both tenure and guard are killed.
func strayRows() (all []row) {
	for _, w := range strays {
		for _, r := range []row{
			{name: "-crash", title: "; as crash", play: once(crash), flaws: []*flaw{commandAlone}},
			{name: "-stop", title: "; as stop", play: afterwards((*stage).stopLeader), flaws: []*flaw{commandAlone}},
			{name: "-freeze", title: "; as freeze-both", play: once(freezeBoth), flaws: []*flaw{noKernelTimer}},
			{name: "-both", title: "; as crash-both, with --pid-namespace", play: once(crashBoth), run: []string{"--pid-namespace"},
				flaws: []*flaw{namespaceIgnored}},
		} {
			r.name, r.title, r.by, r.worker, r.code = w.name+r.name, w.title+r.title, w.by, deaf, codeAsked
			all = append(all, r)
		}
	}
	return all
}

func orderlyRows() []row {
	brief := []string{"-life", "1500ms", "-code", "7"}
	return []row{
		{name: "stop", title: "the leader's tenure is asked to stop (SIGTERM)", play: afterwards((*stage).stopLeader), flaws: []*flaw{tokenReset}},
		{name: "stop-lost", title: "the same while all that it sends and is sent is lost", play: afterwards((*stage).stopLeaderUnheard)},
		{name: "hand-over", title: "the leader is asked to hand over (tenure hand-over), to a named candidate and then to any", play: (*stage).handOvers,
			flaws: []*flaw{tokenReset}},
		{name: "exit", title: "the command of one candidate after another ends by itself with code 7", play: (*stage).exits, worker: brief, code: 7,
			flaws: []*flaw{tokenReset}},
		{name: "forks-exit", title: "the same with children as in forks-lost", play: (*stage).exits, worker: append(brief, forks...), code: 7,
			flaws: []*flaw{commandAlone}},
		{name: "killed", title: "the command itself is killed", play: (*stage).killCommand, flaws: []*flaw{tokenReset}},
	}
}

func longRows() []row {
	return []row{
		{name: "restarts", title: "the server is killed and started again ten times at once, and ten times after up to a quarter of the lease; in a quick run three times", play: (*stage).restarts, alone: true},
		{name: "random", title: "random faults, several at a time", play: (*stage).random, alone: true, single: true, lingers: true,
			flaws: []*flaw{noGuard}},
		{name: "takeover", title: "the leader's tenure is asked to stop (SIGTERM), again and again", play: (*stage).takeovers, alone: true, single: true, measuring: true},
		{name: "footprint", title: "what a follower takes up", play: (*stage).footprint, alone: true, single: true, measuring: true},
	}
}

// choose returns the rows of each store whose whole name the expression matches, or all rows if it
// is empty. If there are several stores, it may match STORE-ROW instead, which is then the name.
// The controls of a row are those of the first store that has it.
func choose(stores []string, expression string) ([]row, error) {
	whole, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return nil, err
	}
	var chosen []row
	controlled := map[string]bool{}
	for _, store := range stores {
		if rigs.Kind(store).URL == nil {
			return nil, fmt.Errorf("no candidate can use store %q", store)
		}
		for _, r := range rows() {
			name := store + "-" + r.name
			if expression != "" && !whole.MatchString(r.name) && !(len(stores) > 1 && whole.MatchString(name)) {
				continue
			}
			if controlled[r.name] {
				r.flaws = nil
			}
			controlled[r.name] = true
			if r.store = store; len(stores) > 1 {
				r.name = name
			}
			chosen = append(chosen, r)
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("no row is %q; -rows lists them", expression)
	}
	return chosen, nil
}
