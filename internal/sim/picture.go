package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/protocol"
)

// picture draws the life of one lease: a leads, renews and dies; b waits and takes over. It draws
// the real actions of the machines and the store in a simulation.
func picture(out io.Writer) {
	f := shoot()
	f.axis(out)
	f.leases(out, "a", f.held[0])
	for i, since := range f.seen {
		next := f.end
		if i+1 < len(f.seen) {
			next = f.seen[i+1]
		}
		f.row(out, label("b", "wait", i), f.wait(since, next))
	}
	f.leases(out, "b", f.held[1])
	fmt.Fprint(out, "\n", legend, "\n")
	f.log(out)
}

func (f *film) leases(out io.Writer, who string, all []lease) {
	for i, l := range all {
		next := f.end
		if i+1 < len(all) {
			next = all[i+1].sent
		}
		f.row(out, label(who, "write", i), f.lease(l, next, who == "a"))
	}
}

const (
	left   = 11 // columns before the drawing
	column = time.Second / 2
	legend = `┣  a write is sent: its sender counts from here. After the answer it may act
   while ━ lasts; a row ends where the next one begins. ╍ is lost
   to the crash
┫  the leader's deadline; ···· is the margin, up to the end of the lease
○  the write is seen: the follower counts from here, and waits while ─ lasts
┤  a whole lease has passed without a newer write
✗  a crashes. This run has slow messages, and reserves 2 s to stop work
`
)

func label(who, what string, i int) string {
	if i > 0 {
		who = " "
	}
	return fmt.Sprintf("%s  %s %d", who, what, i+1)
}

// film records a run, in true time. The clocks of its machines are accurate.
type film struct {
	w     *world
	a, b  *node
	held  [2][]lease
	seen  []time.Duration // when b saw each write of a
	asked []time.Duration // when b sent an operation after the crash, until it led
	crash time.Duration
	led   time.Duration // when b knew that it leads
	end   time.Duration

	version driver.Version // the store's, to detect changes
	news    bool           // it changed, and b has not learned of it yet
	heard   time.Duration  // when b last learned of it
	ops     int
}

// lease is the time of one write, to the deadline that its holder uses.
type lease struct{ sent, deadline time.Duration }

// shoot plays the scene. Every message arrives, a little slowly, so that it can be seen.
func shoot() *film {
	w := &world{cfg: settings{Hour: time.Hour}, dice: newDice(1, 2), calm: true}
	w.plan = plan{
		nodes: 2, lease: 15 * time.Second, renew: 5 * time.Second, poll: 5 * time.Second, watch: true, pristine: true,
		stopWithin: 2 * time.Second, finishWithin: 10 * time.Second, latency: 400 * time.Millisecond,
	}
	w.check = newCheck(w)
	w.store = newStore(w)
	f := &film{w: w, crash: 12 * time.Second, end: 33500 * time.Millisecond}
	f.a, f.b = w.member("a", 0), w.member("b", 1)
	w.queue.add(0, f.a.boot)
	w.queue.add(2*time.Second, f.b.boot)
	w.queue.add(f.crash, f.a.kill)
	w.queue.add(f.end, func() {})
	for w.now < f.end {
		w.happen(w.next())
		f.look()
	}
	if w.check.fault != nil {
		panic(w.check.fault)
	}
	return f
}

// member makes a member with accurate clocks.
func (w *world) member(name string, index int) *node {
	clocks := &machineClocks{mono: 1, raw: 1, boot: 1}
	n := &node{w: w, name: name, index: index, proc: &process{bound: drift, clocks: clocks}}
	w.nodes = append(w.nodes, n)
	return n
}

// look records what the last event changed.
func (f *film) look() {
	if v := f.w.store.cell.Version; v != f.version {
		f.version, f.news = v, true
	}
	f.holder(0, f.a)
	f.holder(1, f.b)
	if f.b.m == nil {
		return
	}
	if at, ok := f.b.m.Heard(); ok && at.Mono != f.heard {
		f.heard = at.Mono
		if f.news && f.w.store.cell.Record.LeaderID == "a" {
			f.seen = append(f.seen, f.w.now)
		}
		f.news = false
	}
	if sent := f.w.stats.ops - f.ops; sent > 0 && f.w.now > f.crash && f.led == 0 {
		f.asked = append(f.asked, f.w.now)
	}
	f.ops = f.w.stats.ops
	if f.led == 0 && f.b.m.Phase() == protocol.Leading {
		f.led = f.w.now
	}
}

// holder asks a machine for how long it may act, and computes when it sent the write for that.
func (f *film) holder(i int, n *node) {
	if !n.alive || !n.m.Holds(n.now()) {
		return
	}
	remaining, _ := n.m.Remaining(n.now(), n.m.Term())
	l := lease{deadline: f.w.now + remaining}
	l.sent = l.deadline - f.w.configure(n, f.w.plan.lease).Budget
	if k := len(f.held[i]); k == 0 || f.held[i][k-1] != l {
		f.held[i] = append(f.held[i], l)
	}
}

// drawing is one row of the picture.
type drawing []rune

func (f *film) blank() drawing {
	return drawing(strings.Repeat(" ", f.at(f.end)))
}

func (f *film) at(t time.Duration) int { return int(t / column) }

// fill draws from one time to another, within the picture.
func (f *film) fill(d drawing, from, to time.Duration, r rune) {
	for i := f.at(from); i < f.at(to) && i < len(d); i++ {
		d[i] = r
	}
}

func (f *film) dot(d drawing, at time.Duration, r rune) { f.fill(d, at, at+column, r) }

// lease draws the time that a write gives its holder, until the next replaces it, or the holder
// dies.
func (f *film) lease(l lease, next time.Duration, dies bool) drawing {
	d := f.blank()
	f.fill(d, l.sent, min(l.deadline, next), '━')
	if next > l.deadline {
		f.fill(d, l.deadline, l.sent+f.w.plan.lease, '·')
		f.dot(d, l.deadline, '┫')
	}
	if dies && next > f.crash {
		f.fill(d, f.crash, l.deadline, '╍')
		f.dot(d, f.crash, '✗')
	}
	f.dot(d, l.sent, '┣')
	return d
}

// wait draws how long a follower waits after it saw a write at since. It sees the next one at next.
func (f *film) wait(since, next time.Duration) drawing {
	d := f.blank()
	over := since + f.w.plan.lease
	f.fill(d, since, min(over, next), '─')
	if over < next {
		f.dot(d, over, '┤')
	}
	f.dot(d, since, '○')
	return d
}

func (f *film) axis(out io.Writer) {
	const step = 5 * time.Second
	text, marks := "seconds", f.blank()
	for t := time.Duration(0); t < f.end; t += step {
		for len(text) < left+f.at(t) {
			text += " "
		}
		text += fmt.Sprint(int(t / time.Second))
		f.dot(marks, t, '|')
	}
	fmt.Fprintln(out, text)
	f.row(out, "", marks)
}

func (f *film) row(out io.Writer, name string, d drawing) {
	fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%-*s%s", left, name, string(d)), " "))
}

// log prints the decisive times.
func (f *film) log(out io.Writer) {
	say := func(at time.Duration, format string, args ...any) {
		fmt.Fprintf(out, "%6.2f  %s\n", at.Seconds(), fmt.Sprintf(format, args...))
	}
	last, since := f.held[0][len(f.held[0])-1], f.seen[len(f.seen)-1]
	say(last.sent, "a sends its last renewal, for %v of lease", f.w.plan.lease)
	say(since, "b sees it, and starts its wait of %v again", f.w.plan.lease)
	say(f.crash, "a crashes")
	for i, at := range f.asked {
		switch {
		case at < since+f.w.plan.lease:
			say(at, "b has heard nothing for a while and reads: nothing is new")
			continue
		case i+1 < len(f.asked):
			say(at, "b has waited, and reads once more")
			continue
		}
		say(at, "b claims the next term, replacing the version that it read")
	}
	say(f.led, "b leads, and counts from %.2f, when it sent the claim", f.held[1][0].sent.Seconds())
	end := last.sent + f.w.plan.lease
	fmt.Fprintf(out, "\nIf a were alive but cut off, it would stop by itself at %.2f, %.1f s before\n",
		last.deadline.Seconds(), (end - last.deadline).Seconds())
	fmt.Fprintf(out, "its lease ends at %.2f. b counts from a later time: its wait ends at %.2f.\n",
		end.Seconds(), (since + f.w.plan.lease).Seconds())
}
