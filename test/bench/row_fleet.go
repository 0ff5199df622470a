package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/driver/natskv"
	"github.com/tenure-go/tenure/test/internal/figures"
	"github.com/tenure-go/tenure/test/internal/machine"
)

var fleetRow = row{
	name: "fleet",
	title: "10,000 elections spread over three processes, each over one connection, lease 30 s; " +
		"then a fourth joins, one is killed (SIGKILL), one ends; in a quick run 1,000 and 6 s",
	note: "Heap (after a collection), goroutines and processor time are per process, each of which " +
		"leads a third and follows the rest, minus those before its start; requests are the server's " +
		"own count (connz, in_msgs) of all three. The lease of an election ends that long after the " +
		"time in the killed leader's last record. An election has a leader from the entry into lead " +
		"until the work has finished. A change is over when no election has moved for 5 s",
	measure: fleetOf,
}

// fleetCast is a cast that runs a fleet.
type fleetCast struct {
	*cast
	terms ledger
	read  int // how much of the journal is in the ledger
}

func fleetOf(b *bench) ([]measure, error) {
	f, err := b.fleetCast(b.pick(1000, 10_000), time.Duration(b.pick(6, 30))*time.Second)
	defer f.dismiss()
	if err != nil {
		return nil, err
	}
	return f.play(f.begin, f.join, f.crash, f.leave)
}

// fleetCast hires three members and starts nothing yet.
func (b *bench) fleetCast(elections int, lease time.Duration) (*fleetCast, error) {
	bucket, err := b.bucket()
	if err != nil {
		return &fleetCast{cast: &cast{}}, err
	}
	role := command{Do: sail, Bucket: bucket, Lease: lease, Quiet: true}
	for i := range elections {
		role.Elections = append(role.Elections, fmt.Sprintf("shard-%05d", i))
	}
	f := &fleetCast{terms: ledger{terms: map[string][]span{}, margin: tenure.Config{Lease: lease}.Margin()}}
	f.cast, err = b.cast("fleet", 3, role)
	return f, err
}

// play runs acts one after another, and adds whether all was safe.
func (f *fleetCast) play(acts ...func() ([]measure, error)) ([]measure, error) {
	var all []measure
	for _, act := range acts {
		found, err := act()
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	wrong := f.terms.wrong()
	return append(all, measure{what: "led by two at once, or elected before the lease's end",
		value: fmt.Sprint(wrong), bound: "0", verdict: figures.Safe(wrong == 0)}), nil
}

// begin starts the first three and measures what they cost.
func (f *fleetCast) begin() ([]measure, error) {
	before, err := f.usages()
	if err != nil {
		return nil, err
	}
	took, err := f.change(func() error { return f.tell(f.role) })
	if err != nil {
		return nil, err
	}
	f.b.sleep(f.role.Lease) // the costs of the start are over
	sent, err := f.sent()
	if err != nil {
		return nil, err
	}
	early, err := f.usages()
	if err != nil {
		return nil, err
	}
	f.b.sleep(2 * f.role.Lease)
	late, err := f.usages()
	if err != nil {
		return nil, err
	}
	now, err := f.sent()
	all := []measure{
		{what: "started together on an empty bucket: all led after", value: figures.Show(took.whole)},
		f.spread("started"),
	}
	for i, u := range late {
		all = append(all, f.weight(fmt.Sprint("process ", i+1), u.minus(before[i], early[i]))...)
	}
	renewals := len(f.role.Elections) * int(3*time.Minute/f.role.Lease)
	perMinute := float64(now-sent) * float64(time.Minute) / float64(late[0].At-early[0].At)
	return append(all, measure{what: "requests per minute, all three", value: fmt.Sprintf("%.0f", perMinute),
		bound:   fmt.Sprintf("%d renewals, 10 %% more", renewals),
		verdict: figures.Within(perMinute < 1.1*float64(renewals))}), err
}

func (f *fleetCast) weight(who string, u usage) []measure {
	n := float64(len(f.role.Elections))
	return []measure{
		{what: who + ": heap per election", value: fmt.Sprintf("%.2f KB", float64(u.Heap)/n/1000),
			bound: "2 KB", verdict: figures.Within(float64(u.Heap) <= 2048*n)},
		{what: who + ": goroutines, at rest / most", value: fmt.Sprint(u.Goroutines, " / ", u.Peak),
			bound: "100, however many elections", verdict: figures.Within(u.Goroutines <= 100)},
		{what: who + ": processor", value: percent(u),
			bound: "20 %", verdict: figures.Within(float64(u.CPU) <= 0.2*float64(u.At))},
	}
}

// join starts a fourth.
func (f *fleetCast) join() ([]measure, error) {
	if err := f.hire(1); err != nil {
		return nil, err
	}
	took, err := f.change(func() error { return f.tell(f.role, f.members[len(f.members)-1]) })
	return f.moves("a fourth joins", took), err
}

// leave ends one in order.
func (f *fleetCast) leave() ([]measure, error) {
	took, err := f.change(func() error {
		m := f.members[0]
		f.members = f.members[1:]
		mark := f.journal.mark()
		if err := f.tell(command{Do: stop}, m); err != nil {
			return err
		}
		defer m.kill()
		_, err := f.await(mark, m, stopped)
		return err
	})
	return f.moves("one ends", took), err
}

// crash kills one.
func (f *fleetCast) crash() ([]measure, error) {
	took, err := f.change(func() error {
		m := f.members[0]
		f.members = f.members[1:]
		m.kill()
		f.b.sleep(settle) // its last write is applied
		leases, err := f.leases(m.id)
		if err == nil {
			err = f.catchUp()
		}
		f.terms.kill(m.id, leases)
		return err
	})
	c := took.changes
	last := time.Duration(c.led - c.ended)
	return []measure{
		{what: "one is killed: end of lease to next leader", value: c.late.String(),
			bound: "2 s", verdict: figures.Within(c.late.Max() <= 2*time.Second)},
		{what: "last lease's end to all led again", value: figures.Show(last),
			bound: "2 s", verdict: figures.Within(last <= 2*time.Second)},
		{what: "kill to all led again", value: figures.Show(took.whole)},
		f.spread("after it"),
	}, err
}

// leases reads when the leases of a killed member end.
func (f *fleetCast) leases(of string) (map[string]int64, error) {
	store, err := natskv.Open(f.b.ctx, f.b.js, f.role.Bucket)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	ends, now, wall := map[string]int64{}, machine.Now(), time.Now()
	for _, name := range f.role.Elections {
		e, err := store.Read(f.b.ctx, name)
		if err != nil {
			return nil, err
		}
		if r := peek(e.Value); r.LeaderID == of && !r.Released {
			ends[name] = now - int64(wall.Sub(r.LastUpdated)) + int64(f.role.Lease)
		}
	}
	return ends, nil
}

// took describes a change: when it was balanced, and when the last election had moved.
type took struct {
	balance, whole time.Duration
	changes
}

func (f *fleetCast) moves(what string, t took) []measure {
	return []measure{
		{what: what + ": balanced after / the last move after", value: figures.Show(t.balance) + " / " + figures.Show(t.whole)},
		{what: what + ": elections moved", value: fmt.Sprintf("%d of %d", t.begun, len(f.role.Elections))},
		{what: what + ": without a leader", value: t.gaps.String()},
		f.spread("after it"),
	}
}

func (f *fleetCast) spread(when string) measure {
	loads := f.terms.loads(f.members)
	share := float64(len(f.role.Elections)) / float64(len(f.members))
	least, most := float64(slices.Min(loads)), float64(slices.Max(loads))
	return measure{what: when + ": led per member, of its share", value: fmt.Sprintf("%.3f to %.3f", least/share, most/share),
		bound: "1.05", verdict: figures.Within(most <= max(1.05*share, math.Ceil(share)))}
}

// change causes something and waits until all elections are led, fairly, and none moves any more.
func (f *fleetCast) change(cause func() error) (took, error) {
	const quiet, often = 5 * time.Second, 30 * time.Second
	began := machine.Now()
	if err := cause(); err != nil {
		return took{}, err
	}
	balanced, said := int64(0), began
	for {
		if err := f.catchUp(); err != nil {
			return took{}, err
		}
		c, now := f.terms.since(began), machine.Now()
		if balanced == 0 && f.terms.fair(f.members, len(f.role.Elections)) {
			balanced = now
		}
		if balanced != 0 && now-max(balanced, c.latest) > int64(quiet) {
			return took{time.Duration(balanced - began), time.Duration(c.latest - began), c}, nil
		}
		progress := fmt.Sprintf("after %s %v of %d led, %d moved", figures.Show(time.Duration(now-began)),
			f.terms.loads(f.members), len(f.role.Elections), c.begun)
		if f.b.ctx.Err() != nil {
			return took{}, errors.New(progress)
		}
		if now-said > int64(often) {
			said = now
			fmt.Fprintln(f.b.log, " ", progress)
		}
		f.b.sleep(settle)
	}
}

// catchUp takes the new reports into the ledger.
func (f *fleetCast) catchUp() error {
	news, _ := f.journal.since(f.read)
	f.read += len(news)
	for _, e := range news {
		if e.What == failed {
			return fmt.Errorf("%s: %s", e.who, e.Error)
		}
		f.terms.note(e)
	}
	return nil
}
