package main

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/tenure-go/tenure/driver"
)

// world is one run of the simulation: members, one job, its cell, and an election that keeps its
// promise: at each moment at most one member holds a valid lease.
type world struct {
	plan   *plan
	rand   *rand.Rand
	out    io.Writer
	now    time.Time // true time
	queue  events
	serial uint64
	store  *store
	nodes  []*node
	check  *check

	token    uint64
	leader   *term
	free     time.Time // no term begins before
	troubled time.Time // until when faults excuse the lack of progress
	nonces   uint64
}

// term is a term of a leader. It is valid until its deadline, if it has one.
type term struct {
	token    uint64
	node     *node
	born     int // the life of the node
	began    time.Time
	asked    bool
	askedAt  time.Time
	deadline time.Time
	renewed  time.Time
}

type event struct {
	at     time.Time
	serial uint64
	do     func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].serial < q[j].serial
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(e any)   { *q = append(*q, e.(event)) }
func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

func newWorld(seed uint64, year bool, out io.Writer) *world {
	r := rand.New(rand.NewPCG(seed, 39))
	w := &world{rand: r, out: out}
	if year {
		w.plan = newYear(seed, r)
	} else {
		w.plan = newPlan(r)
	}
	w.now, w.token = w.plan.start, 10
	w.store, w.check = &store{w: w, era: 5}, newCheck(w)
	for i := range 3 {
		n := &node{w: w, id: fmt.Sprint("m", i+1)}
		w.nodes = append(w.nodes, n)
		n.setClock()
		n.boot()
	}
	if w.plan.fast {
		w.nodes[0].offset = time.Hour
	}
	w.tracef("plan %v", w.plan)
	return w
}

func (w *world) run() error {
	end := w.plan.start.Add(w.plan.length)
	w.after(0, w.elect)
	w.faults()
	for len(w.queue) > 0 && w.check.fault == nil {
		e := heap.Pop(&w.queue).(event)
		if e.at.After(end) {
			break
		}
		w.now = e.at
		e.do()
	}
	if w.check.fault == nil {
		w.now = end
		w.check.finish()
	}
	return w.check.fault
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	heap.Push(&w.queue, event{w.now.Add(d), w.serial, do})
}

func (w *world) chance(p float64) bool { return w.rand.Float64() < p }

// between returns a random time from low to high.
func (w *world) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rand.Int64N(int64(high-low)+1))
}

func (w *world) tracef(format string, args ...any) {
	if w.out != nil {
		fmt.Fprintf(w.out, "%s ", w.now.Format("02T15:04:05.000"))
		fmt.Fprintf(w.out, format+"\n", args...)
	}
}

// valid reports whether the term holds the lease.
func (w *world) valid(t *term) bool {
	return t == w.leader && t.born == t.node.life && (t.deadline.IsZero() || w.now.Before(t.deadline))
}

// remaining returns how much of the lease is left.
func (w *world) remaining(t *term) time.Duration {
	if !w.valid(t) {
		return 0
	}
	left := w.plan.lease - w.now.Sub(t.renewed)%(w.plan.lease/3) // it renews three times in a lease
	if !t.deadline.IsZero() {
		left = min(left, t.deadline.Sub(w.now))
	}
	return left
}

// elect begins a term, if there is none and a member is well.
func (w *world) elect() {
	w.after(w.between(time.Second, 3*time.Second)*w.plan.rare, w.elect)
	if w.leader != nil && (w.leader.deadline.IsZero() || w.now.Before(w.leader.deadline)) || w.now.Before(w.free) {
		return
	}
	if w.leader != nil {
		w.over(w.leader)
	}
	n := w.nodes[w.rand.IntN(len(w.nodes))]
	if n.away() || n.busy() {
		return
	}
	w.token += 1 + uint64(w.rand.IntN(3))
	w.leader = &term{token: w.token, node: n, born: n.life, began: w.now, renewed: w.now}
	w.tracef("%s leads with token %d", n.id, w.token)
	w.check.elected(n)
	n.lead(w.leader)
}

// over ends a term at its deadline: guards stop the work.
func (w *world) over(t *term) {
	if w.leader == t {
		w.leader = nil
	}
	t.node.stopRun("the term is over")
}

// expire gives the present term a deadline, as if no renewal succeeded any more.
func (w *world) expire(least time.Duration) {
	t := w.leader
	if t == nil || !t.deadline.IsZero() {
		return
	}
	t.deadline = w.now.Add(w.between(0, w.plan.lease))
	w.free = w.now.Add(max(w.plan.lease, least))
	w.after(t.deadline.Sub(w.now), func() { w.over(t) })
}

// trouble excuses a lack of progress for a while.
func (w *world) trouble(d time.Duration) {
	if until := w.now.Add(d); until.After(w.troubled) {
		w.troubled = until
	}
}

// call makes a request to the store: it arrives after a delay, perhaps never or twice, and so does
// its answer. done is called once, on the node, with errTimeout after the attempt.
func (w *world) call(n *node, request func() error, done func(error)) {
	answered, life := false, n.life
	answer := func(err error) {
		n.act(life, func() {
			if !answered {
				answered = true
				done(err)
			}
		})
	}
	attempt := w.plan.lease / 3
	w.after(attempt, func() { answer(errTimeout) })
	there, back := w.between(time.Millisecond, 60*time.Millisecond), w.between(time.Millisecond, 60*time.Millisecond)
	if w.plan.lossy {
		switch p := w.rand.Float64(); {
		case p < 0.02:
			return // the request is lost
		case p < 0.05: // the request is late
			there = w.between(0, w.plan.lease)
		case p < 0.08: // the answer is lost
			back = time.Hour * 1000
		case p < 0.11: // the request is repeated
			w.after(there+w.between(0, w.plan.lease/2), func() { _ = request() })
		}
	}
	w.after(there, func() {
		err := request()
		w.after(back, func() { answer(err) })
	})
}

var errTimeout = errors.New("no answer")

// conflict reports whether the store refused a write.
func conflict(err error) bool { return errors.Is(err, driver.ErrConflict) }
