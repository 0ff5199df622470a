package group

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Bounds and defaults of Config.
const (
	defaultSession = 15 * time.Second
	shortSession   = time.Second
	longSession    = 30 * time.Minute
	shortHeartbeat = 50 * time.Millisecond
	maxName        = 249
)

// Config says which group to join. The zero value is usable.
//
//	Name            the program's file name       1 to 249 of a-z A-Z 0-9 . _ -
//	Topic           Name + ".neli"                likewise
//	SessionTimeout  15 s                          1 s to 30 min, and what the brokers allow
//	Heartbeat       SessionTimeout / 5            50 ms to SessionTimeout / 3
//	Replicas        three, or all brokers where there are fewer
//	NoCreate        false
//	BesideGoNELI    false
//	Instance        none                          as Name
//	Logger          discards
type Config struct {
	// Name is the consumer group's name, which all candidates of one election share, and no other
	// program. In the default, characters that Kafka does not allow are replaced by underscores.
	Name string
	// Topic is the topic that the group subscribes to. Nothing is written to it or read from it:
	// any topic works, with any partitions, retention and cleanup. One that does not exist is
	// created with one partition.
	Topic string
	// SessionTimeout is how long the brokers leave the nomination to a silent member. Brokers allow
	// 6 s to 30 min unless they are configured otherwise.
	SessionTimeout time.Duration
	// Heartbeat is the time between two requests of a member. It is also how late a member notices
	// that another one left.
	Heartbeat time.Duration
	// Replicas is how many brokers keep a topic that Join creates.
	Replicas int
	// NoCreate makes Join fail where the topic does not exist.
	NoCreate bool
	// BesideGoNELI says that processes of another kind may be in the group, or join it. Such
	// processes, as goNELI's, lead by owning partition 0 and do not know the election's log. Then a
	// candidate that is not the nominee claims only while the coordinator confirms that it is a
	// member: during that time brokers admit no other kind. A coordinator that does not answer
	// counts as a group of the other kind, so no candidate is elected without it, whatever
	// Precedence is. A leader that is no longer a member is asked to finish.
	BesideGoNELI bool
	// Instance makes this a static member, by a name that no other member has (Kafka calls it
	// group.instance.id). It does not leave the group in Close. A process that joins under the same
	// name within SessionTimeout has its place, and so its nomination. The group does not rebalance
	// for that, unless a rebalance is already under way. So a restart does not move the nomination,
	// and a permanent stop does so only after SessionTimeout. Of two processes with one name the
	// first is out.
	Instance string
	// Logger gets messages about changes and trouble.
	Logger *slog.Logger
}

// settle returns the config with its defaults, or an error.
func (c Config) settle() (Config, error) {
	if c.Name == "" {
		c.Name = legal(filepath.Base(os.Args[0]))
	}
	if c.Topic == "" {
		c.Topic = c.Name + ".neli"
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = defaultSession
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = c.SessionTimeout / 5
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = c.Logger.With("group", c.Name)
	return c, c.check()
}

func (c Config) check() error {
	bad := []error{checkName("Name", c.Name), checkName("Topic", c.Topic)}
	if c.Instance != "" {
		bad = append(bad, checkName("Instance", c.Instance))
	}
	if c.SessionTimeout < shortSession || c.SessionTimeout > longSession {
		bad = append(bad, fmt.Errorf("SessionTimeout %v is not between %v and %v", c.SessionTimeout, shortSession, longSession))
	}
	if c.Heartbeat < shortHeartbeat || c.Heartbeat > c.SessionTimeout/3 {
		bad = append(bad, fmt.Errorf("Heartbeat %v is not between %v and a third of SessionTimeout, %v", c.Heartbeat, shortHeartbeat, c.SessionTimeout/3))
	}
	if c.Replicas < 0 {
		bad = append(bad, fmt.Errorf("Replicas is %d; it must not be negative", c.Replicas))
	}
	return errors.Join(bad...)
}

func checkName(field, name string) error {
	switch {
	case name == "" || len(name) > maxName:
		return fmt.Errorf("%s has %d bytes, not 1 to %d", field, len(name), maxName)
	case name != legal(name):
		return fmt.Errorf("%s %q has other characters than a-z A-Z 0-9 . _ -", field, name)
	}
	return nil
}

// legal replaces characters that a topic's name may not have.
func legal(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
}

// margin is the part of the session that a nominee does not use, so that its nomination is over
// before the coordinator can name another: for clocks that run apart and timers that fire late.
func (c Config) margin() time.Duration { return c.SessionTimeout / 20 }

// timeout is the coordinator's time for an answer that does not depend on other members.
func (c Config) timeout() time.Duration {
	return max(200*time.Millisecond, min(c.SessionTimeout/10, 2*time.Second))
}

// pause is how long to wait after a request that failed.
func (c Config) pause() time.Duration { return min(c.Heartbeat/5, time.Second/2) }
