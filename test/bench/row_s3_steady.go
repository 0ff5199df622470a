package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tenure-go/tenure/test/internal/figures"
)

var objectSteadyRow = row{
	name: "s3-steady",
	title: "object storage: ten candidates in ten processes while nothing happens, 20 elections side by side, lease 15 s (2 s in a " +
		"quick run, as in all rows of object storage that name no other), renewed every third of it",
	note: "Requests as counted by a proxy before the server, one for each process, by method and election; per minute with a lease " +
		"of 15 s. A month has 30 days, and a million PUTs cost $5 and GETs $0.40, as AWS lists them for S3 Standard. S3lect's " +
		"figures are for ten candidates, its interval of 5 s, and without its peer mode",
	measure: objectSteady,
}

const steadyElections = 20

func objectSteady(b *bench) ([]measure, error) {
	both, err := parallel(2, func(i int) ([]bill, error) {
		found, err := b.bill(i == 1)
		return []bill{found}, err
	})
	if err != nil {
		return nil, err
	}
	polled, told := both[0], both[1]
	return []measure{
		{what: "with peers: PUT / GET / other requests per minute, each election", value: told.String(), bound: "12 / 0 / 0",
			verdict: figures.Within(about(told.puts, 12) && told.gets == 0 && told.others == 0), others: "S3lect 12 / 120"},
		{what: "without peers: PUT / GET / other requests per minute, each election", value: polled.String(), bound: "12 / 36 / 0",
			verdict: figures.Within(about(polled.puts, 12) && polled.others == 0), others: "S3lect 12 / 120"},
		{what: "without peers: GET per minute, each follower, mean / max", bound: "4",
			value:   fmt.Sprintf("%.2f / %.2f, n=%d", polled.perFollower(), polled.busiest, steadyElections*(candidates-1)),
			verdict: figures.Within(about(polled.perFollower(), 4)), others: "S3lect 12"},
		{what: "a month with peers, any number of followers", value: fmt.Sprintf("$%.2f", told.month())},
		{what: "a month without peers, nine followers", value: fmt.Sprintf("$%.2f", polled.month()), others: "S3lect $4.67"},
	}, nil
}

// about allows for a request more at the end of the window.
func about(rate, most float64) bool { return rate <= most*1.01 }

// bill is how many requests an election makes in a minute.
type bill struct {
	puts, gets, others float64
	busiest            float64 // GETs of the follower that made most
}

func (b bill) String() string {
	return fmt.Sprintf("%.2f / %.2f / %.2f, n=%d", b.puts, b.gets, b.others, steadyElections)
}

func (b bill) perFollower() float64 { return b.gets / (candidates - 1) }

// month is in dollars.
func (b bill) month() float64 {
	const minutes, put, get = 30 * 24 * 60, 5e-6, 0.4e-6
	return minutes * (b.puts*put + b.gets*get)
}

// bill counts after two leases of quiet, in which all has settled.
func (b *bench) bill(peers bool) (bill, error) {
	leases := b.pick(4, 8)
	name := map[bool]string{true: "told", false: "polled"}[peers]
	c, err := b.stage(scene{
		name: name, members: candidates, elections: steadyElections, lease: b.objectLease(), peers: peers, counted: true,
	})
	defer c.dismiss()
	if err != nil {
		return bill{}, err
	}
	if _, err := c.enthrone(); err != nil {
		return bill{}, err
	}
	for try := 1; ; try++ {
		b.sleep(2 * b.objectLease())
		found, err := c.window(leases)
		if err == nil || try == 4 { // a busy machine may cost somebody a short lease
			return found, err
		}
		fmt.Fprintf(b.log, "  again, for %v\n", err)
	}
}

// window counts in so many leases in which nobody becomes leader.
func (c *cast) window(leases int) (bill, error) {
	for _, m := range c.members {
		m.counter.take()
	}
	mark := c.journal.mark()
	c.b.sleep(time.Duration(leases) * c.role.Lease)
	found := c.bill(float64(leases) * float64(steadyLease) / float64(time.Minute))
	news, _ := c.journal.since(mark)
	if e, changed := last(news, func(e entry) bool { return e.What == leads }); changed {
		return found, fmt.Errorf("%w: %s became leader of %s", errBusy, e.who, e.Election)
	}
	return found, nil
}

// bill is what was counted in as many minutes.
func (c *cast) bill(minutes float64) bill {
	var sum bill
	for _, m := range c.members {
		for r, n := range m.counter.take() {
			rate := float64(n) / minutes
			switch r.method {
			case http.MethodPut:
				sum.puts += rate / steadyElections
			case http.MethodGet:
				sum.gets += rate / steadyElections
				sum.busiest = max(sum.busiest, rate)
			default:
				sum.others += rate / steadyElections
			}
		}
	}
	return sum
}
