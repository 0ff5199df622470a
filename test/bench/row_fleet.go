package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

var fleetRow = row{
	name: "fleet",
	title: "10,000 elections spread over three processes, each over one connection, lease 30 s; then a fourth joins, one is killed (SIGKILL), " +
		"one ends; in a quick run 1,000 and 6 s",
	note: "Heap (after a collection), goroutines and the processor's time are per process, each of which leads a third and follows the " +
		"rest, as differences to before its start; requests are the server's own count (connz, in_msgs) of all three. The lease of " +
		"an election ends that long after the bench, which subscribes to the bucket's subject, heard the dead process's last write of it. An election has a " +
		"leader from when lead is called until the work was told to finish and has; it takes no time here. A change is over when no election has " +
		"moved for 5 s",
	measure: fleetOf,
}

// armada is a cast that has a fleet, and what is known of it.
type armada struct {
	*cast
	tap *tap
	led ledger
	at  int // how far the journal has been read
}

func fleetOf(b *bench) ([]measure, error) {
	a, err := b.armada(b.pick(1000, 10_000), time.Duration(b.pick(6, 30))*time.Second)
	defer a.dismiss()
	if err != nil {
		return nil, err
	}
	defer a.tap.end()
	return a.play(a.begin, a.join, a.crash, a.leave)
}

// armada hires three members, who do nothing yet.
func (b *bench) armada(elections int, lease time.Duration) (*armada, error) {
	bucket, err := b.bucket()
	if err != nil {
		return &armada{cast: &cast{}}, err
	}
	role := command{Do: sail, Bucket: bucket, Lease: lease, Quiet: true}
	for i := range elections {
		role.Elections = append(role.Elections, fmt.Sprintf("shard-%05d", i))
	}
	a := &armada{led: newLedger(lease)}
	if a.cast, err = b.cast("fleet", 3, role); err != nil {
		return a, err
	}
	a.tap, err = listen(b.nc, bucket)
	return a, err
}

// play has one act follow the other, and adds whether all was safe.
func (a *armada) play(acts ...func() ([]measure, error)) ([]measure, error) {
	var all []measure
	for _, act := range acts {
		found, err := act()
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	return append(all, measure{what: "led by two at once, or elected before the lease's end", value: fmt.Sprint(a.led.wrong()), bound: "0",
		verdict: figures.Safe(a.led.wrong() == 0)}), nil
}

// begin has the first three start, and weighs them.
func (a *armada) begin() ([]measure, error) {
	before, err := a.usages()
	if err != nil {
		return nil, err
	}
	took, err := a.change(func() error { return a.tell(a.role) })
	if err != nil {
		return nil, err
	}
	a.b.sleep(a.role.Lease) // what the beginning cost is over
	sent, err := a.sent()
	if err != nil {
		return nil, err
	}
	early, err := a.usages()
	if err != nil {
		return nil, err
	}
	window := 2 * a.role.Lease
	a.b.sleep(window)
	late, err := a.usages()
	if err != nil {
		return nil, err
	}
	now, err := a.sent()
	span := time.Duration(late[0].At - early[0].At)
	all := []measure{
		{what: "started together on an empty bucket: all led after", value: figures.Show(took.whole)},
		a.spread("started"),
	}
	for i, u := range late {
		all = append(all, a.weight(fmt.Sprint("process ", i+1), u.minus(before[i], early[i]))...)
	}
	perMinute := float64(now-sent) * float64(time.Minute) / float64(span)
	return append(all, measure{what: "requests per minute, all three", value: fmt.Sprintf("%.0f", perMinute),
		bound: fmt.Sprintf("%d renewals, 5 %% more", a.renewals()), verdict: figures.Within(perMinute < 1.1*float64(a.renewals()))}), err
}

// renewals are those per minute of all elections at a third of the lease.
func (a *armada) renewals() int {
	return len(a.role.Elections) * int(3*time.Minute/a.role.Lease)
}

func (a *armada) weight(who string, u usage) []measure {
	n := float64(len(a.role.Elections))
	return []measure{
		{what: who + ": heap per election", value: fmt.Sprintf("%.2f KB", float64(u.Heap)/n/1000), bound: "2 KB",
			verdict: figures.Within(float64(u.Heap) <= 2048*n)},
		{what: who + ": goroutines, at rest / most", value: fmt.Sprint(u.Goroutines, " / ", u.Peak), bound: "100, however many elections",
			verdict: figures.Within(u.Goroutines <= 100)},
		{what: who + ": processor", value: percent(u), bound: "20 %", verdict: figures.Within(float64(u.CPU) <= 0.2*float64(u.At))},
	}
}

// join has one more start.
func (a *armada) join() ([]measure, error) {
	if err := a.hire(1); err != nil {
		return nil, err
	}
	took, err := a.change(func() error { return a.tell(a.role, a.members[len(a.members)-1]) })
	return a.moves("a fourth joins", took), err
}

// leave ends one in order.
func (a *armada) leave() ([]measure, error) {
	m := a.members[0]
	took, err := a.change(func() error {
		a.members = a.members[1:]
		mark := a.journal.mark()
		if err := a.tell(command{Do: stop}, m); err != nil {
			return err
		}
		defer m.kill()
		_, err := a.await(mark, m, stopped)
		return err
	})
	return a.moves("one ends", took), err
}

// crash kills one.
func (a *armada) crash() ([]measure, error) {
	m := a.members[0]
	var ends map[string]int64
	took, err := a.change(func() error {
		a.members = a.members[1:]
		m.kill()
		a.b.sleep(5 * settle) // what it has written last is heard as well
		if err := a.read(); err != nil {
			return err
		}
		ends = a.tap.ends(m.id, a.role.Lease)
		a.led.gone(m.id, ends)
		return nil
	})
	var late figures.Dist
	var last, first int64
	for name, end := range ends {
		late = append(late, time.Duration(a.led.since[name]-end))
		last, first = max(last, end), max(first, a.led.since[name])
	}
	return []measure{
		{what: "one is killed: end of lease to next leader", value: late.String(), bound: "2 s", verdict: figures.Within(late.Max() <= 2*time.Second)},
		{what: "last lease's end to all led again", value: figures.Show(time.Duration(first - last)), bound: "2 s",
			verdict: figures.Within(first-last <= int64(2*time.Second))},
		{what: "kill to all led again", value: figures.Show(took.whole)},
		a.spread("after it"),
	}, err
}

// took is a change: how long until nobody led too many and all were led, until the last election moved, how many moved, and for how
// long each had no leader.
type took struct {
	balance, whole time.Duration
	moves          int
	gaps           figures.Dist
}

func (a *armada) moves(what string, t took) []measure {
	return []measure{
		{what: what + ": balanced after / the last move after", value: figures.Show(t.balance) + " / " + figures.Show(t.whole)},
		{what: what + ": elections moved", value: fmt.Sprintf("%d of %d", t.moves, len(a.role.Elections))},
		{what: what + ": without a leader", value: t.gaps.String()},
		a.spread("after it"),
	}
}

func (a *armada) spread(when string) measure {
	loads := a.led.loads(a.members)
	least, most := slices.Min(loads), slices.Max(loads)
	share := float64(len(a.role.Elections)) / float64(len(a.members))
	return measure{what: when + ": led per member, of its share", value: fmt.Sprintf("%.3f to %.3f", float64(least)/share, float64(most)/share),
		bound: "1.05", verdict: figures.Within(float64(most) <= max(1.05*share, math.Ceil(share)))}
}

// often is how often a change that goes on says how far it is.
const often = 30 * time.Second

// change brings something about and waits until it is over.
func (a *armada) change(bring func() error) (took, error) {
	if err := a.read(); err != nil {
		return took{}, err
	}
	began := machine.Now()
	a.led.begin(began)
	if err := bring(); err != nil {
		return took{}, err
	}
	said := began
	for quiet := began; machine.Now()-max(quiet, a.led.last) < int64(5*time.Second); a.b.sleep(settle) {
		if err := a.read(); err != nil {
			return took{}, err
		}
		if a.led.balanced == 0 {
			quiet = machine.Now()
		}
		now := machine.Now()
		far := fmt.Sprintf("after %s %v of %d led, %d moved", figures.Show(time.Duration(now-began)), a.led.loads(a.members), len(a.role.Elections), a.led.moved)
		if a.b.ctx.Err() != nil {
			return took{}, errors.New(far)
		}
		if now-said > int64(often) {
			said = now
			fmt.Fprintln(a.b.log, " ", far)
		}
	}
	l := &a.led
	return took{time.Duration(l.balanced - began), time.Duration(l.last - began), l.moved, l.gaps}, nil
}

// read takes what was reported since the last time.
func (a *armada) read() error {
	news, _ := a.journal.since(a.at)
	a.at += len(news)
	for _, e := range news {
		if e.What == failed {
			return fmt.Errorf("%s: %s", e.who, e.Error)
		}
		a.led.note(e)
		if a.led.balanced == 0 && a.led.fair(a.members, len(a.role.Elections)) {
			a.led.balanced = e.At
		}
	}
	return nil
}

// ledger is who leads what, by what members say. What two of them say comes in any order.
type ledger struct {
	leader map[string]string
	count  map[string]int
	since  map[string]int64       // when the leader, or nobody, began to lead
	ready  map[string]int64       // the end of the lease of one who is dead
	ahead  map[string][]overtaken // the terms that have begun before the predecessor has said that it has finished
	// expired are the elections whose last term ended at its own deadline.
	expired map[string]bool
	// Since begin: how many were elected, when the last, for how long there was nobody, and when the balance was first right.
	moved    int
	last     int64
	gaps     figures.Dist
	balanced int64
	overlaps int
	// margin is the part of a lease that its holder does not use, and more than what the bench hears late.
	margin time.Duration
}

// overtaken is a term of which it is not known yet when its work ended, though another began at a moment.
type overtaken struct {
	after string
	at    int64
}

func newLedger(lease time.Duration) ledger {
	return ledger{
		margin: tenure.Config{Lease: lease}.Margin(), leader: map[string]string{}, count: map[string]int{}, since: map[string]int64{},
		ready: map[string]int64{}, ahead: map[string][]overtaken{}, expired: map[string]bool{},
	}
}

func (l *ledger) begin(now int64) { l.moved, l.last, l.gaps, l.balanced = 0, now, nil, 0 }

func (l *ledger) note(e entry) {
	switch name := e.Election; {
	case e.What == leads:
		l.lead(name, e)
	case e.What == left && l.awaited(name, e):
	case e.What == left && l.leader[name] == e.who:
		l.set(name, "", e.At)
		l.expired[name] = e.Expired
	}
}

// awaited notes an end whose successor has begun already, and reports whether there is one. A term that expired ended at its own
// deadline, whenever a busy process came to say so.
func (l *ledger) awaited(name string, e entry) bool {
	i := slices.IndexFunc(l.ahead[name], func(x overtaken) bool { return x.after == e.who })
	if i < 0 {
		return false
	}
	began := l.ahead[name][i].at
	l.ahead[name] = slices.Delete(l.ahead[name], i, i+1)
	l.apart(min(e.At, began), began, began < e.At && !e.Expired)
	return true
}

func (l *ledger) lead(name string, e entry) {
	since, known := l.since[name]
	end, dead := l.ready[name]
	switch {
	case dead:
		l.apart(since, e.At, e.At < end-int64(l.margin))
	case l.leader[name] != "":
		l.ahead[name] = append(l.ahead[name], overtaken{l.leader[name], e.At})
	case known:
		l.apart(since, e.At, e.At < since && !l.expired[name])
	}
	l.set(name, e.who, e.At)
	delete(l.ready, name)
	delete(l.expired, name)
	l.moved++
	l.last = max(l.last, e.At)
}

// apart notes the time from the end of a work to the beginning of the next.
func (l *ledger) apart(end, beginning int64, overlap bool) {
	l.gaps = append(l.gaps, time.Duration(beginning-end))
	if overlap {
		l.overlaps++
	}
}

// wrong is how often two led at once, as far as they have finished.
func (l *ledger) wrong() int {
	n := l.overlaps
	for _, all := range l.ahead {
		n += len(all)
	}
	return n
}

func (l *ledger) set(name, who string, at int64) {
	l.count[l.leader[name]]--
	l.count[who]++
	l.leader[name], l.since[name] = who, at
}

// gone takes what a dead member led from it. Nobody is left to say when its work ended that others had taken over before.
func (l *ledger) gone(who string, ends map[string]int64) {
	for name, all := range l.ahead {
		l.ahead[name] = slices.DeleteFunc(all, func(x overtaken) bool { return x.after == who })
	}
	for name, by := range l.leader {
		if by == who {
			l.set(name, "", ends[name])
			l.ready[name] = ends[name]
		}
	}
}

func (l *ledger) loads(members []*member) []int {
	var all []int
	for _, m := range members {
		all = append(all, l.count[m.id])
	}
	return all
}

// fair reports whether all are led, and no member leads more than its share and a tenth: twice the excess that is meant, which a
// few elections that other members won may add.
func (l *ledger) fair(members []*member, elections int) bool {
	sum := 0
	for _, n := range l.loads(members) {
		sum += n
		if 10*n*len(members) > 11*elections {
			return false
		}
	}
	return sum == elections
}

// tap hears all that is written to a bucket.
type tap struct {
	sub    *nats.Subscription
	prefix string

	mu   sync.Mutex
	last map[string]written // by election
}

type written struct {
	by string
	at int64
}

func listen(nc *nats.Conn, bucket string) (*tap, error) {
	t := &tap{prefix: "$KV." + bucket + ".", last: map[string]written{}}
	var err error
	if t.sub, err = nc.Subscribe(t.prefix+">", t.hear); err != nil {
		return nil, err
	}
	return t, t.sub.SetPendingLimits(-1, -1)
}

func (t *tap) hear(m *nats.Msg) {
	now := machine.Now()
	c := peek(m.Data)
	if c.LeaderID == "" || c.Released {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[strings.TrimPrefix(m.Subject, t.prefix)] = written{c.LeaderID, now}
}

// ends are the ends of the leases of one who is dead.
func (t *tap) ends(who string, lease time.Duration) map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]int64{}
	for name, w := range t.last {
		if w.by == who && !strings.Contains(name, "/members/") {
			all[name] = w.at + int64(lease)
		}
	}
	return all
}

func (t *tap) end() { _ = t.sub.Unsubscribe() }
