package demo

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure/cmd/internal/fault"
	"github.com/tenure-go/tenure/driver"
)

// stopWithin is how long candidates have to end by themselves.
const stopWithin = 5 * time.Second

// start runs the i-th candidate, and runs it again whenever it has ended.
func (d *director) start(i int) {
	if d.stopping {
		return
	}
	s := d.options.spec(i, d.place)
	p, err := launch(d.options.Command(s.ID), s, func(line string) { d.heardOutput(s.ID, line) })
	if err != nil {
		d.fail(fault.New("", "a candidate cannot be started: %w", err))
		return
	}
	d.crew[s.ID] = p
	d.note(deed{do: doStart, id: s.ID, pid: p.cmd.Process.Pid})
	d.running.Go(func() {
		err := p.listen(
			func(r report) { d.post(func() { d.hear(p, r) }) },
			func(line string) { d.heardOutput(s.ID, line) })
		d.post(func() { d.ended(i, p, err) })
	})
}

func (d *director) heardOutput(id, line string) {
	d.post(func() { d.note(deed{do: doOutput, id: id, text: line}) })
}

// ended starts a candidate again after half a lease, as a service manager would.
func (d *director) ended(i int, p *process, err error) {
	delete(d.crew, p.id)
	if !p.ending {
		d.note(deed{do: doDied, id: p.id, pid: p.cmd.Process.Pid, text: reason(err)})
	}
	if d.stopping {
		d.endLast()
		return
	}
	d.after(d.options.Lease/2, func() { d.start(i) })
}

func reason(err error) string {
	if err == nil {
		return "by itself"
	}
	return err.Error()
}

// hear takes a report. Acts need not be sorted, since the witness takes them in any order.
func (d *director) hear(p *process, r report) {
	switch {
	case r.Act != 0:
		for _, o := range d.acts.add(r.Act, p.id, p.cmd.Process.Pid, r.At) {
			d.print.overlap(time.Now(), o)
		}
	case r.Event != nil:
		d.hearEvent(p, r)
	case r.Wrote != nil:
		d.order.add(entry{at: r.At, sight: read(driver.Entry{Value: r.Wrote})})
	case r.Peer != "":
		d.order.add(entry{at: r.At, deed: &deed{time: time.Now(), do: doPeer, id: p.id, text: r.Peer}})
	case r.Fault != "":
		d.hearFault(p, r)
	}
}

func (d *director) hearEvent(p *process, r report) {
	e, err := r.event()
	if err != nil {
		d.note(deed{do: doOutput, id: p.id, text: fmt.Sprintf("an event that cannot be read: %v", err)})
		return
	}
	d.order.add(entry{at: r.At, event: e})
}

// hearFault ends the demo if there never was a leader, since the other candidates would have the
// same fault. After the first leader a missing right is reported as trouble, by an event of its
// own.
func (d *director) hearFault(p *process, r report) {
	switch led := d.ledger.elections > 0; {
	case led && r.Denied:
	case led:
		d.note(deed{do: doOutput, id: p.id, text: r.Fault})
	case r.Denied:
		d.fail(d.place.Denied(r.Fault))
	default:
		d.fail(fault.New("", "candidate %s: %s", p.id, r.Fault))
	}
}

// stop ends all candidates: the leader last, so that no candidate is elected just before its end.
func (d *director) stop() {
	if d.stopping {
		return
	}
	d.stopping = true
	for id, p := range d.crew {
		if id != d.ledger.leader {
			p.end()
		}
	}
	d.endLast()
	d.after(stopWithin/2, d.endAll)
	d.after(stopWithin, d.killAll)
}

// endLast ends the leader, or the last candidate that runs.
func (d *director) endLast() {
	if len(d.crew) == 1 {
		d.endAll()
	}
}

func (d *director) endAll() {
	for _, p := range d.crew {
		p.end()
	}
}

func (d *director) killAll() {
	for _, p := range d.crew {
		p.kill()
	}
}

// end asks a process to end, frozen or not.
func (p *process) end() {
	p.ending = true
	p.askToEnd()
	p.resume()
}
