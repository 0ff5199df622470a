package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-go/tenure/internal/overlay"
	"github.com/tenure-go/tenure/internal/witness"
	"github.com/tenure-go/tenure/test/internal/mutex"
)

const atLeastOnce = "--at-least-once"

// cronRows have tenure cron instead of tenure run. A worker runs for most of the time between two
// ticks, so that faults often come during a run.
func cronRows() []row {
	every := []string{"--schedule", "@every 2s", "--job", "job", "--window", "2m"}
	worker := []string{"-life", "1500ms"}
	return []row{
		{name: "cron", title: "tenure cron runs a job every 2 s, a tick at most once; as random, with wall clocks that are up to 10 s off, in a quick run with one clock",
			cron: every, worker: worker, play: (*stage).random, alone: true, single: true, lingers: true, flaws: []*flaw{lostRunsAgain}},
		{name: "cron-again", title: "the same with --at-least-once", cron: slices.Concat(every, []string{atLeastOnce}), worker: worker,
			play: (*stage).random, alone: true, single: true, full: true, lingers: true},
	}
}

// wallVariable is the environment variable with the error of the wall clock of a tenure with
// wrongWall.
const wallVariable = "BATTERY_WALL"

// wrongWall gives tenure a wall clock that is off. All processes of a machine share its clock.
var wrongWall = &flaw{"wrong-wall", "the right time of day", []overlay.Edit{
	{File: systemClock, Old: "import (\n", New: "import (\n	\"os\"\n"},
	{File: systemClock, Old: "		time.Now(),\n	}\n}\n",
		New: "		time.Now().Add(wall),\n	}\n}\n\nvar wall, _ = time.ParseDuration(os.Getenv(\"" + wallVariable + "\"))\n"}}, nil}

// lostRunsAgain repeats ticks that may run at most once.
var lostRunsAgain = &flaw{"lost-runs-again", "the choice of at most once: a tick whose leader died during the run is run again",
	append(wrongWall.edit, overlay.Edit{File: "../../schedule/internal/ticks/decide.go", Old: "	return d.policy.AtLeastOnce && t.", New: "	return t."}), regresses}

const systemClock = "../../clock/system_linux.go"

// offset bounds the error of the wall clocks of a row.
func (b *battery) offset(r row) time.Duration {
	if r.cron == nil || b.quick {
		return 0
	}
	return 10 * time.Second
}

// cronArgs returns the flags of tenure cron.
func (s *stage) cronArgs() []string {
	// In a quick run, the ticks of a new job are skipped for less time.
	return slices.Concat(s.row.cron, []string{"--clock-offset", max(s.b.offset(s.row), time.Second).String()})
}

// ticks returns the path of the file in which workers say which tick they run.
func (s *stage) ticks() string { return filepath.Join(s.dir, "ticks") }

// judge judges the journal. A worker of an agent can be suspended between the answer and its act,
// so only the time before the question counts. Of tenure cron, a run counts as a term: Stale counts
// the runs that overlap, and Regressed the ticks that were repeated and the tokens that fell.
func (s *stage) judge(records []witness.Record) (witness.Verdict, error) {
	switch {
	case s.row.agent:
		v := witness.ByTime(records)
		return v, modeled(v, records, mutex.ByTime)
	case s.row.cron == nil:
		v := witness.Judge(records)
		return v, modeled(v, records, mutex.ByTime, mutex.ByOrder)
	}
	text, err := os.ReadFile(s.ticks())
	if err != nil && !os.IsNotExist(err) {
		return witness.Verdict{}, err
	}
	v, said, err := judgeTicks(records, string(text), slices.Contains(s.row.cron, atLeastOnce))
	s.notes = append(s.notes, said)
	return v, err
}

// modeled returns an error if the witness has found no fault, and a model of a mutex finds one.
func modeled(v witness.Verdict, records []witness.Record, places ...mutex.Place) error {
	if v.Stale > 0 || v.Regressed > 0 {
		return nil
	}
	for _, place := range places {
		if faults := mutex.Faults(records, place); len(faults) > 0 {
			return errors.New(strings.Join(faults, ", "))
		}
	}
	return nil
}

// judgeTicks judges the journal of workers by the ticks that they say they run. The nth record of a
// process that began belongs to the nth line of that process. Again: lost ticks run again.
func judgeTicks(records []witness.Record, lines string, again bool) (v witness.Verdict, said string, err error) {
	v.AfterEnd = witness.ByTime(records).AfterEnd
	said = "no worker began"
	runs := map[uint32][]witness.Run{}
	for line := range strings.Lines(lines) {
		root, r, err := readTick(line)
		if err != nil {
			return v, said, err
		}
		runs[root] = append(runs[root], r)
	}
	now, highest, fell := map[uint32]witness.Run{}, uint64(0), 0
	var byTime, byOrder witness.Ticks
	for i, r := range records {
		switch r.What {
		case witness.Began:
			of := runs[r.Root]
			if len(of) == 0 {
				return v, said, fmt.Errorf("process %d does not say which tick it runs", r.Root)
			}
			now[r.Root], runs[r.Root] = of[0], of[1:]
			if r.Token < highest {
				fell++
			}
			highest = max(highest, r.Token)
		case witness.Act:
			run := now[r.Root]
			run.Again, run.Token, run.Who, run.Number = again, r.Token, fmt.Sprint("c", r.Candidate), int(r.Root)
			byTime.Add(run, r.At)
			byOrder.Add(run, int64(i))
			v.Acts++
		case witness.Asked, witness.Ended:
		}
	}
	t, o := byTime.Judge(), byOrder.Judge()
	v.Terms, v.Stale, v.Overlap = t.Runs, max(t.Overlapping, o.Overlapping), t.Overlap
	v.Regressed = max(t.Repeated, o.Repeated) + fell
	return v, fmt.Sprintf("%v; %d tokens fell", t, fell), nil
}

// readTick reads a line that a worker wrote: its process, the planned instant, the attempt, and the
// job.
func readTick(line string) (root uint32, r witness.Run, err error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return 0, r, fmt.Errorf("a worker wrote %q about its tick", line)
	}
	pid, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil {
		return 0, r, err
	}
	planned, err := time.Parse(time.RFC3339, fields[1])
	if err != nil {
		return 0, r, err
	}
	r.Planned, r.Job = planned.Unix(), fields[3]
	r.Attempt, err = strconv.Atoi(fields[2])
	return uint32(pid), r, err
}
