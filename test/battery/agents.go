package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/internal/test/agentworker"
)

// languages are those of the workers of agents: one for each candidate.
var languages = [members]string{"python", "node", "java"}

// agentRows have tenure agent instead of tenure run. Each candidate is an agent and a worker, in a
// language of its own, that asks the agent whether it may act. The fault hits the leader, until it
// has hit each candidate.
func agentRows() []row {
	kept := []*flaw{answerKept}
	all := []row{
		{name: "agent-freeze", title: "a worker of tenure agent that leads is stopped (SIGSTOP) for 2 leases", play: eachLeader(freezeWorker), flaws: kept},
		{name: "agent-freeze-agent", title: "its agent is stopped for 2 leases", play: eachLeader(freezeAgent), flaws: kept},
		{name: "agent-freeze-both", title: "both are stopped for 2 leases", play: eachLeader(freezeWorkerAndAgent), flaws: kept},
		{name: "agent-crash", title: "the worker is killed (SIGKILL), and started again after 2 leases", play: eachLeader(crashWorker)},
		{name: "agent-crash-agent", title: "its agent is killed, and started again after 2 leases", play: eachLeader(crashAgent), flaws: kept},
		{name: "agent-crash-both", title: "both are killed, and started again after 2 leases", play: eachLeader(crashWorkerAndAgent)},
		{name: "agent-blackhole", title: "as blackhole, between agent and server", play: eachLeader(blackhole), flaws: kept},
		{name: "agent-cut", title: "as cut, between agent and server", play: eachLeader(cut), flaws: kept},
		{name: "agent-mute", title: "as mute, between agent and server", play: eachLeader(mute), flaws: kept},
		{name: "agent-delay", title: "as delay, between agent and server", play: eachLeader(delay), flaws: kept},
		{name: "agent-outage", title: "as outage", play: eachLeader(outage), flaws: kept},
		{name: "agent-hang", title: "as hang", play: eachLeader(hang), flaws: kept},
		{name: "agent-random", title: "random faults of workers, agents, network and server, several at a time", play: (*stage).random, single: true,
			flaws: kept},
	}
	for i := range all {
		all[i].agent, all[i].full = true, true
	}
	return all
}

// answerKept is a mistake of the workers. Tenure is as it is.
var answerKept = &flaw{"answer-kept", "the question before each act of a term but the first: the worker keeps the answer", nil, overlaps}

// eachLeader injects a fault when there is a leader, until it has hit each candidate. In a control
// one fault is enough, since its workers never stop.
func eachLeader(f fault) func(*stage) {
	return func(s *stage) {
		for hit := map[*candidate]bool{}; len(hit) < len(s.candidates); {
			s.settle()
			c, _ := s.leader()
			if hit[c] {
				s.letAnotherLead(hit)
				continue
			}
			hit[s.inject(f)] = true
			if s.control {
				return
			}
		}
	}
}

// letAnotherLead asks the leader to hand over to a candidate that was not hit.
func (s *stage) letAnotherLead(hit map[*candidate]bool) {
	c, old := s.leader()
	to := s.candidates[slices.IndexFunc(s.candidates, func(c *candidate) bool { return !hit[c] })]
	if _, ok := s.tryToHandOver(c, to.id()); ok {
		s.next(old)
	}
}

// The faults of workers and agents.
var (
	freezeWorker         = fault{name: "the worker is stopped", lasts: 2, begin: freezes((*candidate).workers)}
	freezeAgent          = fault{name: "the agent is stopped", lasts: 2, begin: freezes((*candidate).alone)}
	freezeWorkerAndAgent = fault{name: "worker and agent are stopped", lasts: 2, begin: together(freezeWorker, freezeAgent)}
	crashWorker          = fault{name: "the worker is killed", lasts: 2, begin: kills(workerOf)}
	crashAgent           = fault{name: "the agent is killed", lasts: 2, begin: kills(agentOf)}
	crashWorkerAndAgent  = fault{name: "worker and agent are killed", lasts: 2, begin: kills(workerOf, agentOf)}
)

// agentFaults are those of the random row.
var agentFaults = []fault{freezeWorker, freezeAgent, freezeWorkerAndAgent, crashWorker, crashAgent, crashWorkerAndAgent, blackhole, mute, cut, delay, asked}

func (c *candidate) workers() ([]int, error) { return []int{c.worker.PID()}, nil }

// kills returns a fault whose end starts the killed processes again.
func kills(whom ...func(*candidate) *crew.Process) func(*candidate) (func() error, error) {
	return func(c *candidate) (func() error, error) {
		for _, process := range whom {
			if err := process(c).Kill(); err != nil {
				return nil, err
			}
		}
		for _, process := range whom {
			<-process(c).Ended()
		}
		return c.start, nil
	}
}

func agentOf(c *candidate) *crew.Process  { return c.Process }
func workerOf(c *candidate) *crew.Process { return c.worker }

// startAgent starts the agent and the worker of a candidate, unless they run.
func (c *candidate) startAgent() error {
	if c.Process == nil || !c.running() {
		if err := c.startTenure(); err != nil {
			return err
		}
	}
	if err := c.awaitAgent(); err != nil {
		return err
	}
	if c.worker != nil && c.worker.Running() {
		return nil
	}
	c.checkWorker()
	return c.startWorker()
}

func (c *candidate) agentArgs() []string {
	return []string{"agent", "--store", c.stage.row.kind().URL(c.address()), "--create", "--listen", "unix:" + c.socket()}
}

func (c *candidate) socket() string { return filepath.Join(c.stage.dir, c.id()) }

// awaitAgent waits until the agent accepts connections.
func (c *candidate) awaitAgent() error {
	for {
		conn, err := net.Dial("unix", c.socket())
		switch {
		case err == nil:
			return conn.Close()
		case !c.running():
			return fmt.Errorf("the agent of %s ended with exit code %d", c.id(), c.Code())
		case !sleep(c.stage.b.ctx, glance):
			return errors.Join(err, c.stage.b.ctx.Err())
		}
	}
}

// attempts is how often a worker is started. An agent that was stopped may not have noticed yet
// that the last worker was killed, and then refuses a second campaign with its id.
const attempts = 20

// startWorker starts the worker of an agent, and waits until its campaign has begun.
func (c *candidate) startWorker() error {
	programs, err := c.stage.b.agentWorkers()
	if err != nil {
		return err
	}
	mode := "asks"
	if c.stage.control {
		mode = "cached"
	}
	command := append(slices.Clone(programs[c.number-1]), "unix:"+c.socket(), c.id(), c.stage.journal(),
		strconv.FormatInt(c.stage.lease.Milliseconds(), 10), mode)
	for range attempts {
		if began, err := c.tryWorker(command); began || err != nil {
			return err
		}
		if !sleep(c.stage.b.ctx, c.stage.lease/10) {
			return c.stage.b.ctx.Err()
		}
	}
	return fmt.Errorf("the worker of %s ended %d times before its campaign began", c.id(), attempts)
}

// tryWorker starts a worker, and returns whether its campaign began.
func (c *candidate) tryWorker(command []string) (began bool, err error) {
	up := make(chan struct{})
	var once sync.Once
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environment(c.stage.mark)
	c.worker, err = crew.Hire(cmd, nil, func(any) {}, func(line string) {
		if line == "up" {
			once.Do(func() { close(up) })
		}
		c.say(line)
	})
	if err != nil {
		return false, err
	}
	select {
	case <-up:
		return true, nil
	case <-c.worker.Ended():
		return false, nil
	case <-c.stage.b.ctx.Done():
		return false, c.stage.b.ctx.Err()
	}
}

// say adds a line to the log.
func (c *candidate) say(line string) {
	if log, err := c.openLog(); err == nil {
		_, _ = fmt.Fprintln(log, line)
		_ = log.Close()
	}
}

// endWorker kills the worker of an agent.
func (c *candidate) endWorker() error {
	c.checkWorker()
	if err := c.worker.Kill(); err != nil {
		return err
	}
	<-c.worker.Ended()
	return nil
}

// checkWorker checks the exit code of a worker that has ended: only the battery ends one.
func (c *candidate) checkWorker() {
	if w := c.worker; w != nil && !w.Running() && w.Code() != codeSignal {
		c.stage.wrong("the worker of %s ended by itself, with exit code %d", c.id(), w.Code())
	}
}

// compileWorkers returns the command of the worker of each candidate.
func (b *battery) compileWorkers() (programs [members][]string, err error) {
	top, err := source()
	if err != nil {
		return programs, err
	}
	classes := filepath.Join(b.dir, "classes")
	if err := os.MkdirAll(classes, 0o700); err != nil {
		return programs, err
	}
	for i, language := range languages {
		if programs[i], err = agentworker.Program(b.ctx, filepath.Join(top, "../.."), language, classes); err != nil {
			return programs, err
		}
	}
	return programs, nil
}
