package clientgo

import (
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
)

// Config has the settings of a Lock. The zero value of each field selects its default:
//
//	field          default
//	Election       those of tenure.Config; StopWithin is the sum below, and FinishWithin is at
//	               least StopWork + TimerLateness
//	RetryPeriod    500 ms
//	RenewDeadline  1 s
//	StopWork       2 s
//
// In the worst case the elector learns of the end of a term RetryPeriod and RenewDeadline later, by
// two timers, and the work needs StopWork after that. So Election.StopWithin must be at least
//
//	RetryPeriod + RenewDeadline + Election.Tuning.TimerLateness + StopWork
//
// The lease must have room for that, and for the renewals. RetryPeriod and RenewDeadline can be
// short, since no call of the lock waits for the store. When the program ends or hands over, the
// lease is renewed while the work stops, so Election.FinishWithin must be at least StopWork +
// TimerLateness.
type Config struct {
	// Election has the settings of the candidate.
	Election tenure.Config
	// RetryPeriod and RenewDeadline are the settings of the elector with these names. RenewDeadline
	// must be more than 1.2 times RetryPeriod.
	RetryPeriod, RenewDeadline time.Duration
	// StopWork is how long the work may take to stop when its context has ended.
	StopWork time.Duration
}

// Times has the settings of the elector that belong to a Lock. Give all of them to the elector.
type Times struct {
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// StopWork is for GracefulShutdownTimeout of a manager of controller-runtime. After it, Start
	// of the manager returns an error, and the program must exit.
	StopWork time.Duration
}

func orDefault(d *time.Duration, def time.Duration) {
	if *d == 0 {
		*d = def
	}
}

// withDefaults returns the settings with their defaults, or an error if they do not fit together.
func (c Config) withDefaults() (Config, error) {
	orDefault(&c.RetryPeriod, 500*time.Millisecond)
	orDefault(&c.RenewDeadline, time.Second)
	orDefault(&c.StopWork, 2*time.Second)
	for _, field := range []struct {
		name  string
		value time.Duration
	}{{"RetryPeriod", c.RetryPeriod}, {"RenewDeadline", c.RenewDeadline}, {"StopWork", c.StopWork}} {
		if field.value < time.Millisecond {
			return c, fmt.Errorf("clientgo: %s is %v: set it to 1ms or more", field.name, field.value)
		}
	}
	if least := c.RetryPeriod + c.RetryPeriod/5; c.RenewDeadline <= least {
		return c, fmt.Errorf("clientgo: RenewDeadline is %v, and RetryPeriod is %v: set RenewDeadline to more than %v, 1.2 times RetryPeriod",
			c.RenewDeadline, c.RetryPeriod, least)
	}
	lateness := c.Election.WithDefaults().Tuning.TimerLateness
	need := c.RetryPeriod + c.RenewDeadline + lateness + c.StopWork
	orDefault(&c.Election.StopWithin, need)
	if c.Election.StopWithin < need {
		return c, fmt.Errorf("clientgo: Election.StopWithin is %v, but the elector may notice the end of a term after "+
			"RetryPeriod (%v) and RenewDeadline (%v), with timers that are late by %v, and the work then stops within "+
			"StopWork (%v): set StopWithin to %v or more, or leave it unset",
			c.Election.StopWithin, c.RetryPeriod, c.RenewDeadline, lateness, c.StopWork, need)
	}
	need = c.StopWork + lateness
	if c.Election.FinishWithin == 0 {
		c.Election.FinishWithin = max(need, c.Election.WithDefaults().FinishWithin)
	}
	if c.Election.FinishWithin < need {
		return c, fmt.Errorf("clientgo: Election.FinishWithin is %v, but the work stops within StopWork (%v) of a timer that is "+
			"late by %v: set FinishWithin to %v or more, or leave it unset",
			c.Election.FinishWithin, c.StopWork, lateness, need)
	}
	return c, nil
}

// times returns the settings of the elector. A LeaseDuration is counted in whole seconds.
func (c *Config) times() Times {
	lease := c.Election.WithDefaults().Lease
	return Times{
		LeaseDuration: (lease + time.Second - 1).Truncate(time.Second),
		RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod, StopWork: c.StopWork,
	}
}
