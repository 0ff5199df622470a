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
	f := &shared{id: full.ID, store: store, clock: full.Clock, log: given.Logger, onEvent: given.OnEvent, metrics: given.Metrics, announcing: callLimiter{limit: maxAnnouncing}}
	able := driver.AbilitiesOf(store)
	f.watcher, f.announcer, f.rights.store = able.Watcher, able.Presence, able.RightsChecker
	return f
}

// newSettings returns the settings of a valid Config.
func newSettings(f *shared, given, full *Config) *settings {
	s := &settings{given: given.clone(), backoff: full.Tuning.Backoff, machine: full.protocol()}
	s.given.ID, s.given.Nominator = f.id, nil
	s.machine.ID, s.machine.Rand = f.id, record.Random
	s.machine.Hearsay = driver.AbilitiesOf(f.store).PeerPushed
	return s
}

// incarnation returns a name that no other election value has, in this process or another (L12).
func incarnation(store driver.Store) string {
	if s := driver.AbilitiesOf(store).Identifier; s != nil {
		return s.Incarnation()
	}
	return fmt.Sprintf("%016x", record.Random())
}
