package neli

import (
	"maps"

	"github.com/tenure-go/tenure"
)

// settings returns the settings of the election.
func (s *session) settings() tenure.Config {
	n := s.n
	cfg := tenure.Config{
		ID: n.cfg.Name, Lease: leaseFor(*n.cfg.HeartbeatTimeout), FinishWithin: n.props.silence,
		NomineeOnly: n.cfg.Precedence == nil, Logger: n.log,
	}
	if n.cfg.Precedence != nil {
		cfg.Tuning.Precedence = *n.cfg.Precedence
	}
	if n.cfg.Configure != nil {
		n.cfg.Configure(&cfg)
	}
	cfg.Metadata = merge(cfg.Metadata, n.ground.metadata())
	also := cfg.OnEvent
	cfg.OnEvent = func(e tenure.Event) {
		s.checkLeader(e)
		if also != nil {
			also(e)
		}
	}
	return cfg
}

func merge(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

// checkLeader ends the session with a fatal error if the leader is of another group.
func (s *session) checkLeader(e tenure.Event) {
	if e.Kind != tenure.EventLeader || !e.Leader.Exists() {
		return
	}
	if err := s.n.ground.check(e.Leader); err != nil {
		s.end(err)
	}
}
