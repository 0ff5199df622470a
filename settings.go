package tenure

import (
	"fmt"
	"log/slog"
	"time"
	"weak"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
	"github.com/tenure-go/tenure/internal/trace"
	"github.com/tenure-go/tenure/metrics"
)

// shared holds the parts of an election that Reconfigure does not change. The elections of a Group
// share them.
type shared struct {
	id         string
	store      driver.Store
	watcher    driver.Watcher // the store, if it pushes changes
	clock      clock.Clock
	log        *slog.Logger // nil: none; onEvent may be nil, too
	onEvent    func(Event)
	metrics    *metrics.Set // nil: none are collected
	trace      *trace.Log   // nil: nothing is recorded
	calls      callLimiter
	cancels    cancelGroup
	leaders    leaderInterner
	latency    latencyProbe
	rights     rights
	announcer  driver.Presence // the store, if candidates can answer over it
	announcing callLimiter
	silence    presenceLog
	troubleLog loglimit.Limiter
}

// settings holds the parts that Reconfigure changes. It is immutable: Reconfigure replaces it. So
// the elections of a Group share it too.
type settings struct {
	given   Config // as the user wrote it, without the fields that cannot change
	backoff func(int) time.Duration
	machine protocol.Config
}

func newShared(store driver.Store, given, full *Config) *shared {
	f := &shared{id: full.ID, store: store, clock: full.Clock, log: given.Logger, onEvent: given.OnEvent, metrics: given.Metrics, trace: trace.NewLog(given.Trace, trace.Waiting), announcing: callLimiter{limit: maxAnnouncing}}
	able := driver.AbilitiesOf(store)
	f.watcher, f.announcer, f.rights.store = able.Watcher, able.Presence, able.Inspector
	return f
}

// newSettings returns the settings of a valid Config.
func newSettings(f *shared, given, full *Config) *settings {
	s := &settings{given: given.clone(), backoff: full.Tuning.Backoff, machine: full.protocol()}
	s.given.ID = f.id
	s.machine.ID, s.machine.Rand = f.id, record.Random
	s.machine.Hearsay = driver.AbilitiesOf(f.store).Peers != nil
	return s
}

// incarnation returns a name that no other election value has, in this process or another (L12).
func (e *Election) incarnation() (name string) {
	if p := driver.AbilitiesOf(e.runner.store).Peers; p != nil {
		name = p.Incarnation(e.leaseLeft())
	}
	if name == "" {
		name = fmt.Sprintf("%016x", record.Random())
	}
	return name
}

// leaseLeft returns a function for driver.Peers, which does not keep the election in memory.
func (e *Election) leaseLeft() func(term uint64) time.Duration {
	alive := weak.Make(e)
	return func(term uint64) time.Duration {
		e := alive.Value()
		if e == nil {
			return 0
		}
		m := &e.runner
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.machine.LeaseLeft(m.clock.Now(), term)
	}
}

// given returns the present settings, and a copy of them as they were given, without the defaults
// of unset fields.
func (m *runner) given() (now *settings, cfg Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settings, m.settings.given.clone()
}

// Reconfigure changes the settings of an election, running or not. It calls change with a copy of
// the present settings, as they were given: unset fields stay unset, and their defaults follow the
// new settings. It calls change again if another Reconfigure was faster.
//
//	err := e.Reconfigure(func(c *tenure.Config) { c.Lease = 30 * time.Second })
//
//	setting                              takes effect
//	Address, Metadata, Priority, Lease,  with the next write of this process
//	a smaller StopWithin, Drift or
//	TimerLateness
//	a larger StopWithin                  when the renewal that is sent at once is confirmed
//	a larger Drift or TimerLateness      when the next regular renewal is confirmed
//	a longer Tuning.Renew                with the next confirmed renewal
//	Clock, Logger, OnEvent, Metrics,     never: changes are ignored
//	Trace, Nomination.Nominator
//	ID                                   never: another ID is an error
//	all others                           when they are used next
//
// The record states the length of the present lease. Every member waits for that length, even if
// its own Lease is now shorter.
//
// For settings that are not valid it changes nothing, and returns a *ConfigError, as New does.
//
// Members may have different leases for a while, which is safe as long as the record is in the
// store. If the record is deleted during that time, no member knows how long to wait: see
// docs/guarantees.md.
func (e *Election) Reconfigure(change func(*Config)) error {
	for {
		if done, err := e.runner.reconfigure(change); done {
			return err
		}
	}
}

// reconfigure reports false if another call changed the settings first.
func (m *runner) reconfigure(change func(*Config)) (done bool, err error) {
	was, cfg := m.given()
	change(&cfg)
	if cfg.ID != "" && cfg.ID != m.id {
		return true, invalid(m.key, problem("ID", cfg.ID, fmt.Sprintf("is %q and cannot be changed to %q", m.id, cfg.ID), ""))
	}
	cfg.Nomination.Nominator = was.given.Nomination.Nominator
	full := cfg
	full.ID, full.Clock = m.id, m.clock
	full = full.WithDefaults()
	hasNominator := m.nominee != nil
	if err := full.validate(driver.AbilitiesOf(m.store), m.key, &cfg, hasNominator); err != nil {
		return true, err
	}
	s := newSettings(m.shared, &cfg, &full)
	s.machine.HasNominator = hasNominator
	m.step(func(clock.Reading) {
		if done = m.settings == was; done {
			m.settings = s
			m.machine.Reconfigure(&s.machine)
		}
	})
	return done, nil
}

// protocol returns the settings that the state machine needs, without the identity.
func (c *Config) protocol() protocol.Config {
	p := protocol.Config{
		Addr: c.Address, Metadata: c.Metadata, Priority: c.Priority,
		Precedence: c.Nomination.Precedence, NomineeOnly: c.Nomination.Only,
		Lease: c.Lease, Renew: c.Tuning.Renew,
		FinishWithin: c.FinishWithin, Grace: c.Tuning.Grace, Splay: c.Tuning.Splay,
		Poll: c.Tuning.Poll, PollStable: c.Tuning.PollStable, Retry: c.Tuning.Retry, HeadStart: headStart,
	}
	p.Promise(c.Tuning.Drift, c.Tuning.TimerLateness, c.StopWithin)
	return p
}

// headStart is how much earlier than others a named successor may claim.
const headStart = 250 * time.Millisecond
