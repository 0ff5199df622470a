package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tenure-go/tenure/internal/crew"
	"github.com/tenure-go/tenure/test/bench/internal/jobs"
	builder "github.com/tenure-go/tenure/test/internal/command"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

// scheduled measures many jobs in one process.
type scheduled struct {
	jobs   int
	warm   choice[time.Duration] // until each job has run
	window choice[time.Duration]
}

const jobsProcess = "github.com/tenure-go/tenure/test/bench/internal/jobs/process"

func (x scheduled) about() about {
	return about{"jobs", fmt.Sprintf("%d scheduled jobs in one process over one client, lease 15 s; each runs about once a minute", x.jobs),
		"The work of the jobs lasts 0.2 s. Their intervals are from 31 s to 90 s, so that their ticks are spread over " +
			"each minute (17 at an instant), or a minute, so that all are due at the same instant. Start is from the planned instant " +
			"to the call of the work. Memory and processor are those of the whole process, as the system counts " +
			"them. Requests are the calls of the store per tick, without those of the election"}
}

func (x scheduled) measure(t *trial) {
	binary := must(builder.BuildIn(t.ctx, t.dir, jobsProcess))
	spread, once := make([]string, x.jobs), make([]string, x.jobs)
	for i := range x.jobs {
		spread[i], once[i] = fmt.Sprintf("@every %ds", 31+i%60), "@every 1m"
	}
	x.play(t, binary, "one job each second: ", jobs.Settings{Specs: []string{"@every 1s"}}, false)
	x.play(t, binary, "one election: ", jobs.Settings{Specs: spread}, true)
	x.play(t, binary, "all at one instant: ", jobs.Settings{Specs: once}, false)
	x.play(t, binary, "an election per job: ", jobs.Settings{Specs: spread, Each: true}, false)
}

// play measures one process. The promise has bounds.
func (x scheduled) play(t *trial, binary, label string, s jobs.Settings, promise bool) {
	on, bucket := t.shared(), t.unique("jobs")
	check(on.Create(t.ctx, bucket))
	s.URL, s.Bucket, s.Lease = "nats://"+on.Addresses()[0], bucket, 15*time.Second
	var reports crew.Journal[jobs.Report]
	p := must(crew.Hire(exec.Command(binary), s, func(r jobs.Report) { reports.Add(r) }, func(line string) { fmt.Fprintln(t.log, "  "+filepath.Base(binary)+": "+line) }))
	t.cleanup(func() { _ = p.Kill(); <-p.Ended() })
	ask := func() jobs.Report {
		mark := reports.Mark()
		check(p.Send("report"))
		return must(reports.Await(t.ctx, mark, "a report", func(jobs.Report) bool { return true }))
	}
	elections := 1
	if s.Each {
		elections = len(s.Specs)
	}
	for ask().Led < elections {
		t.sleep(settle)
	}
	t.sleep(pick(t.bench, x.warm))
	ask()
	_, before, err := machine.Of(p.PID())
	check(err)
	began := time.Now()
	t.sleep(pick(t.bench, x.window))
	memory, after, err := machine.Of(p.PID())
	check(err)
	took, r := time.Since(began), ask()
	t.report(x.lines(label, r, memory, float64(after-before)/float64(took), took, promise)...)
	check(p.Leave())
}

func (x scheduled) lines(label string, r jobs.Report, m machine.Memory, share float64, took time.Duration, promise bool) []measure {
	start, memory, cpu := figures.Bound{}, measure{}, measure{}
	if promise {
		start.Median = 20 * time.Millisecond
		memory.bound, memory.verdict = "below 30 MB", figures.Within(m.Resident < 30e6)
		cpu.bound, cpu.verdict = "below 2 %", figures.Within(share < 0.02)
	}
	memory.what, memory.value = label+"resident memory", fmt.Sprintf("%.1f MB", float64(m.Resident)/1e6)
	cpu.what, cpu.value = label+"processor", fmt.Sprintf("%.2f %% of a core", 100*share)
	ticks := float64(max(1, len(r.Late)))
	return []measure{
		memory, cpu,
		timed(label+"start after the tick", r.Late, start, ""),
		{what: label + "reads and writes per tick", value: fmt.Sprintf("%.2f and %.2f", float64(r.Reads)/ticks, float64(r.Writes)/ticks)},
		{what: label + "ticks, and renewals of elections, per minute",
			value: fmt.Sprintf("%.0f and %.0f", ticks/took.Minutes(), float64(r.Renewals)/took.Minutes())},
	}
}
