package doctor

import (
	"fmt"
	"math"
	"time"

	"github.com/tenure-go/tenure/clock"
)

// leastRate is how long the clocks are compared at least: their readings are some microseconds
// apart.
const leastRate = 100 * time.Millisecond

// checkClock compares the rates of this machine's clocks since an instant. Elections need no time
// of day, and no clock of the server.
func (d *Doctor) checkClock(began clock.Instant) {
	now := d.clock.Now().Instant
	mono, raw := now.Mono-began.Mono, now.Raw-began.Raw
	allowed := d.clock.Drift()
	if mono < leastRate {
		time.Sleep(leastRate)
		now = d.clock.Now().Instant
		mono, raw = now.Mono-began.Mono, now.Raw-began.Raw
	}
	off := math.Abs(float64(mono-raw)) / float64(raw)
	text := fmt.Sprintf("%.0f ppm off the hardware's rate; elections allow %.0f", off*1e6, allowed*1e6)
	if asleep := (now.Boot - began.Boot) - mono; asleep > time.Second {
		text += fmt.Sprintf("; the machine slept for %v meanwhile", asleep.Round(time.Second))
	}
	if off > allowed {
		d.measurement("clock rate", Unsafe, "end the slewing of the clock by its time daemon, or raise Tuning.Drift in all members", "%s", text)
	} else {
		d.measurement("clock rate", OK, "", "%s", text)
	}
	d.checkTimeOfDay(timeOfDay())
}

// synchronization is what the kernel knows of the time of day.
type synchronization struct {
	synchronized bool
	maxError     time.Duration
	rate         float64 // correction of the clock's rate, in ppm
}

func (d *Doctor) checkTimeOfDay(s synchronization, err error) {
	const check, use = "time of day", "no election depends on it"
	switch {
	case err != nil:
		d.row(check, Unknown, "", "could not be checked: %v; %s", err, use)
	case !s.synchronized:
		d.row(check, OK, "run a time daemon, such as chrony", "advice: not synchronized; %s", use)
	default:
		d.measurement(check, OK, "", "synchronized within %v, rate corrected by %.0f ppm; %s", s.maxError.Round(time.Millisecond), s.rate, use)
	}
}

// checkCost computes the requests and the cost of a month with the default settings.
func (d *Doctor) checkCost() {
	const check, members, month = "cost", 3, 30 * 24 * time.Hour
	if !d.Billed {
		free := 0.0
		d.report.DollarsPerMonth = &free
		d.row(check, OK, "", "$0: this store does not bill for requests")
		return
	}
	cfg := d.config(d.Lease)
	writes := float64(month) / float64(cfg.Tuning.Renew)
	reads := (members - 1) * float64(month) / float64(cfg.Tuning.PollStable)
	text := fmt.Sprintf("%.0f writes and %.0f reads a month (%d members, lease %v)", writes, reads, members, d.Lease)
	if d.Prices.List == "" {
		d.row(check, OK, "", "%s; no prices of this server are known", text)
		return
	}
	cost := (writes*d.Prices.Write + reads*d.Prices.Read) / 1000
	d.report.DollarsPerMonth = &cost
	d.row(check, OK, "", "$%.2f: %s; %s on %s", cost, text, d.Prices.List, d.Prices.Date)
}
