package tenure

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/tenure-go/tenure/clock"
	"github.com/tenure-go/tenure/driver"
	"github.com/tenure-go/tenure/internal/loglimit"
	"github.com/tenure-go/tenure/internal/protocol"
	"github.com/tenure-go/tenure/internal/record"
)

// shared holds the parts of an election that Reconfigure does not change. The name is not among
// them, so siblings share one.
type shared struct {
	id         string
	store      driver.Store
	watcher    driver.Watcher // the store, if it pushes changes
	clock      clock.Clock
	log        *slog.Logger // nil, as onEvent may be: no listener
	onEvent    func(Event)
	calls      callLimiter
	cancels    cancelGroup
	leaders    leaderInterner
	latency    latencyProbe
	rights     rights
	troubleLog loglimit.Limiter
}

// settings holds the parts that Reconfigure changes, by replacing the whole. It is never written
// to, so siblings share it too.
type settings struct {
	given   Config // as the user wrote it, but for what is fixed and not shown there
	backoff func(int) time.Duration
	machine protocol.Config
}

func newShared(store driver.Store, given, full *Config) *shared {
	f := &shared{id: full.ID, store: store, clock: full.Clock, log: given.Logger, onEvent: given.OnEvent}
	f.watcher, _ = store.(driver.Watcher)
	f.rights.store, _ = store.(driver.RightsChecker)
	return f
}

// newSettings takes a Config that is valid.
func newSettings(f *shared, given, full *Config) *settings {
	s := &settings{given: given.clone(), backoff: full.Backoff, machine: full.protocol()}
	s.given.ID, s.given.Nominator = f.id, nil
	s.machine.ID, s.machine.Rand = f.id, record.Random
	_, s.machine.Hearsay = f.store.(driver.PeerPushed)
	return s
}

// incarnation returns a name that no other election value has, in this process or another (L12).
func incarnation(store driver.Store) string {
	if s, ok := store.(driver.Identifier); ok {
		return s.Incarnation()
	}
	return fmt.Sprintf("%016x", record.Random())
}

// Sibling returns an election under another name, on the store of this one and with its present
// settings. It starts nothing. The two share common data in memory. Use it for many elections: the
// second to the ten-thousandth need about half the memory of elections made by New, and all
// siblings together make at most 256 store calls at once. Reconfiguring one does not affect the
// other. Afterwards they share only ID, Clock, Logger and OnEvent.
//
// A Nominator serves one candidate, so the sibling takes the one that is given here. It must be nil
// if this election has none, and only then.
//
// It returns an error with a *ConfigError for each problem: the store cannot hold the name, the
// nominator is missing, or there must be none.
func (e *Election) Sibling(name string, nominator driver.Nominator) (*Election, error) {
	m := &e.runner
	found := checkName(m.store, name)
	switch {
	case nominator == nil && m.nomination != nil:
		found = append(found, problem("Nominator", nil, fmt.Sprintf("is nil, but its sibling %q has one", m.key), "")...)
	case nominator != nil && m.nomination == nil:
		found = append(found, problem("Nominator", nominator, fmt.Sprintf("is set, but its sibling %q has none", m.key), "")...)
	}
	if err := invalid(name, found); err != nil {
		return nil, err
	}
	m.mu.Lock()
	s := m.settings
	m.mu.Unlock()
	return newElection(m.shared, name, s, nominator), nil
}
